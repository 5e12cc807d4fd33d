package terminal

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStepsInAPipe(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	s := NewSteps(&b, false, func() time.Time { return at })
	s.Update(1, 2, "cordon gpu-1", 30*time.Second, false)
	s.Update(1, 2, "cordon gpu-1", 30*time.Second, false)
	at = at.Add(400 * time.Millisecond)
	s.Update(1, 2, "cordon gpu-1", 30*time.Second, true)
	s.Update(2, 2, "evict a/\x1b[2Jb", 5*time.Minute, false)
	at = at.Add(75 * time.Second)
	s.Update(2, 2, "evict a/b", 5*time.Minute, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := `[ ] 1/2 cordon gpu-1  0s of at most 30s
[x] 1/2 cordon gpu-1  400ms
[ ] 2/2 evict a/[2Jb  0s of at most 5m
[x] 2/2 evict a/b  1m15s
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestStepsOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		s := NewSteps(&b, true, time.Now)
		s.Update(1, 2, "cordon", time.Minute, true)
		s.Update(2, 2, strings.Repeat("漢", 60), 90*time.Second, false)
		time.Sleep(1500 * time.Millisecond) // the bubble's clock: takes no time
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		frames := strings.Split(b.String(), "\x1b[2A")
		if len(frames) != 2 {
			t.Fatalf("one redraw by the clock was wanted: %q", b.String())
		}
		lines := strings.Split(frames[1], "\n")
		if len(lines) != 3 || !strings.HasSuffix(lines[1], "  1s of at most 1m30s") || width(lines[1]) > 79 {
			t.Errorf("got %q", lines)
		}
		if strings.Count(frames[0], "\x1b[1A") != 1 {
			t.Errorf("got %q", frames[0])
		}
	})
}

func TestStepsReportWriteErrors(t *testing.T) {
	s := NewSteps(broken{}, false, time.Now)
	s.Update(1, 1, "x", 0, true)
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "write progress: disk full") {
		t.Error(err)
	}
}
