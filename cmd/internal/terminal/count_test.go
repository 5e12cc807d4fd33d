package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	now := begin
	var b bytes.Buffer
	c := NewCount(&b, "Slack\x1b[2J", "threads", func() time.Time { return now })
	for _, s := range []struct {
		after time.Duration
		done  int
		share float64
	}{{time.Second, 50, 0.1}, {4 * time.Second, 200, 0.5}, {4*time.Second + time.Millisecond, 201, 0.5}, {8 * time.Second, 300, 0}, {10 * time.Second, 500, 1.2}} {
		now = begin.Add(s.after)
		c.Set(s.done, s.share)
	}
	c.Close()
	want := []string{
		"Slack[2J   [###############               ]  50%  200 threads  50.0/s  4s left",
		"Slack[2J                                                300 threads  37.5/s",
		"Slack[2J   [##############################] 100%  500 threads  50.0/s  0s left",
		"",
	}
	var got []string
	for _, line := range strings.Split(b.String(), "\r\x1b[2K")[1:] {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	for i := range want {
		want[i] = strings.Join(strings.Fields(want[i]), " ")
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
