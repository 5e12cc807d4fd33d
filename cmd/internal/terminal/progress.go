package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	barAfter = 2 * time.Second // what is quicker shows no bar
	barEvery = 100 * time.Millisecond
	barWidth = 30
)

// Progress is a reader that shows on a terminal how far it has come, once it has
// taken two seconds.
type Progress struct {
	r    io.Reader
	w    io.Writer
	what string
	of   int64
	now  func() time.Time

	read        int64
	began, last time.Time // last: when it was drawn
}

// From goes on with another reader: of a whole that is read in pieces.
func (p *Progress) From(r io.Reader) io.Reader {
	p.r = r
	return p
}

// NewProgress reads from r and draws on w, which is a terminal. what is done, to so
// many bytes; 0 when nobody knows.
func NewProgress(w io.Writer, r io.Reader, what string, of int64, now func() time.Time) *Progress {
	return &Progress{r: r, w: w, what: clean(what, true), of: of, now: now, began: now()}
}

// Read implements io.Reader.
func (p *Progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.read += int64(n)
	if at := p.now(); at.Sub(p.began) >= barAfter && at.Sub(p.last) >= barEvery {
		p.last = at
		fmt.Fprint(p.w, "\r\x1b[2K"+p.line())
	}
	return n, err
}

// line leaves the last column free: a terminal would begin a new line.
func (p *Progress) line() string {
	room := min(screen(p.w), maxColumns) - 1
	size := fmt.Sprintf("%d MiB", p.read>>20)
	if p.of <= 0 {
		return style{ASCII: true}.ends(p.what, size, room)
	}
	done := min(p.read, p.of)
	full := int(done * barWidth / p.of)
	bar := fmt.Sprintf("[%s%s] %3d%%  %s%s", strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), done*100/p.of, size, p.pace(done))
	return style{ASCII: true}.ends(p.what, bar, room)
}

// pace is how fast it goes, and how long what is left takes at that.
func (p *Progress) pace(done int64) string {
	took := p.last.Sub(p.began)
	if done == 0 || took <= 0 {
		return ""
	}
	left := time.Duration(float64(took) / float64(done) * float64(p.of-done)).Round(time.Second)
	return fmt.Sprintf("  %.1f MiB/s  %s left", float64(p.read)/(1<<20)/took.Seconds(), left)
}

// Close takes the bar away.
func (p *Progress) Close() {
	if !p.last.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[2K")
	}
}
