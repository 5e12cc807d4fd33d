package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Count shows on a terminal how much of something was done that is counted, once it has
// taken two seconds.
type Count struct {
	w    io.Writer
	what string
	unit string
	now  func() time.Time

	began, last time.Time // last: when it was drawn
}

// NewCount draws on w, which is a terminal. what is done, in units such as "threads".
func NewCount(w io.Writer, what, unit string, now func() time.Time) *Count {
	return &Count{w: w, what: clean(what, true), unit: unit, now: now, began: now()}
}

// Set tells how many are done, and what share of all that is; 0: nobody knows.
func (c *Count) Set(done int, share float64) {
	at := c.now()
	if at.Sub(c.began) < barAfter || at.Sub(c.last) < barEvery {
		return
	}
	c.last = at
	fmt.Fprint(c.w, "\r\x1b[2K"+c.line(done, share))
}

func (c *Count) line(done int, share float64) string {
	room := min(screen(c.w), maxColumns) - 1
	took := c.last.Sub(c.began)
	size := fmt.Sprintf("%d %s  %.1f/s", done, c.unit, float64(done)/took.Seconds())
	if share <= 0 {
		return style{ASCII: true}.ends(c.what, size, room)
	}
	share = min(share, 1)
	left := time.Duration(float64(took) / share * (1 - share)).Round(time.Second)
	full := int(share * barWidth)
	bar := fmt.Sprintf("[%s%s] %3d%%  %s  %s left", strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), int(share*100), size, left)
	return style{ASCII: true}.ends(c.what, bar, room)
}

// Close takes the bar away.
func (c *Count) Close() {
	if !c.last.IsZero() {
		fmt.Fprint(c.w, "\r\x1b[2K")
	}
}
