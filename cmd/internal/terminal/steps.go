package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
)

// refresh is how often running times are redrawn.
const refresh = time.Second

// Steps shows how a long operation goes on. On a terminal it redraws one tree
// in place, at least once a second; elsewhere it writes one line per change. It
// draws in ASCII, which every terminal has.
type Steps struct {
	w   io.Writer
	tty bool
	now func() time.Time

	mu    sync.Mutex
	steps []step // in the order they were first heard of
	of    int
	drawn int // lines on the screen
	err   error

	stop    chan struct{}
	stopped sync.WaitGroup
	closing sync.Once
}

type step struct {
	n          int
	text       string
	within     time.Duration // zero: there is no deadline
	start, end time.Time     // end: zero while it runs
}

// NewSteps starts showing steps on w; Close ends it.
func NewSteps(w io.Writer, tty bool, now func() time.Time) *Steps {
	s := &Steps{w: w, tty: tty, now: now, stop: make(chan struct{})}
	if tty {
		s.stopped.Go(s.tick)
	}
	return s
}

func (s *Steps) tick() {
	t := time.NewTicker(refresh)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.mu.Lock()
			s.redraw()
			s.mu.Unlock()
		}
	}
}

// Update says that step n of so many is at text, which has to be done within some time
// (0: whatever it takes), or is done. The same news twice is shown once.
func (s *Steps) Update(n, of int, text string, within time.Duration, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = clean(text, false)
	at := s.find(n)
	st := &s.steps[at]
	if s.of == of && st.text == text && st.within == within && done == !st.end.IsZero() {
		return
	}
	s.of, st.text, st.within, st.end = of, text, within, time.Time{}
	if done {
		st.end = s.now()
	}
	if s.tty {
		s.redraw()
		return
	}
	what, elapsed := s.line(*st)
	s.write(what + "  " + elapsed + "\n")
}

// find is the place of step n, which is made when it is new.
func (s *Steps) find(n int) int {
	for i := range s.steps {
		if s.steps[i].n == n {
			return i
		}
	}
	s.steps = append(s.steps, step{n: n, start: s.now()})
	return len(s.steps) - 1
}

// line is one step and the time it has taken; while it runs, of how much.
func (s *Steps) line(st step) (what, elapsed string) {
	mark, end := "[ ]", s.now()
	if !st.end.IsZero() {
		mark, end = "[x]", st.end
	}
	took := end.Sub(st.start).Round(100 * time.Millisecond)
	if took >= 10*time.Second {
		took = took.Round(time.Second)
	}
	elapsed = took.String()
	if st.end.IsZero() && st.within > 0 {
		elapsed += " of at most " + plainly(st.within)
	}
	return fmt.Sprintf("%s %d/%d %s", mark, st.n, s.of, st.text), elapsed
}

// plainly writes a deadline: whole minutes are 5m, not 5m0s.
func plainly(d time.Duration) string {
	if d = d.Round(time.Second); d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

func (s *Steps) redraw() {
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	// A line that the terminal wrapped would make the count of lines wrong.
	room := screen(s.w) - 1
	for i, st := range s.steps {
		branch := "|- "
		if i == len(s.steps)-1 {
			branch = "`- "
		}
		what, elapsed := s.line(st)
		b.WriteString("\r\x1b[2K" + style{ASCII: true}.ends(branch+what, elapsed, room) + "\n")
	}
	s.drawn = len(s.steps)
	s.write(b.String())
}

// screen is how many columns there are to draw on.
func screen(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(f.Fd()); err == nil && columns > 1 {
			return columns
		}
	}
	return maxColumns
}

func (s *Steps) write(text string) {
	if text == "" {
		return
	}
	if _, err := io.WriteString(s.w, text); err != nil && s.err == nil {
		s.err = fmt.Errorf("write progress: %w", err)
	}
}

// Close leaves the last state on the screen. It returns the first error of
// writing; closing again does nothing.
func (s *Steps) Close() error {
	s.closing.Do(func() { close(s.stop) })
	s.stopped.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
