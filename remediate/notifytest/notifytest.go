// Package notifytest is the suite that every Notifier passes: what its contract says, held
// against the adapter and a server that stands in for the vendor. A new adapter writes a
// Service and calls Run.
package notifytest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/notice"
)

// Fault is how the vendor answers a request that would write.
type Fault struct {
	Kind  Kind
	After time.Duration // of TooMany: the hint, whole seconds
}

// Kind of a fault.
type Kind string

// The kinds.
const (
	TooMany  Kind = "429"                     // not done; the hint says when again
	Broken   Kind = "5xx"                     // not done
	Soft     Kind = "200 with an error"       // not done, and said in a 200, where the vendor does so
	Bad      Kind = "400"                     // not done, and never will be
	LostIn   Kind = "lost on its way"         // not done; the connection breaks
	LostOut  Kind = "its answer is lost"      // done; the connection breaks before the answer
	BadToken Kind = "refuses the credentials" // not done
	Hangs    Kind = "hangs"                   // not done, and nothing is answered until the caller has gone
)

// Message is what people see of one incident.
type Message struct{ Incident, Text string }

// Service is the vendor, as the suite drives it and looks at it.
type Service interface {
	// New makes an adapter value as a process does that starts: all on the one store.
	New(t *testing.T, c *Clock, log *slog.Logger) notice.Notifier
	// Fail has the next requests that would write answered so, one after the other.
	Fail(...Fault)
	// Writes counts the requests that would write, those that failed too.
	Writes() int
	// Messages are what people see now, one per message, in the order they came.
	Messages() []Message
	// Secrets are what may stand nowhere but in requests.
	Secrets() []string
}

// Clock is a time that passes when somebody sleeps.
type Clock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

// NewClock begins at a fixed time.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 11, 22, 14, 2, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep passes time at once.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.slept = c.now.Add(max(0, d)), append(c.slept, d)
	return ctx.Err()
}

// longest is the longest sleep so far.
func (c *Clock) longest() (d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slept {
		d = max(d, s)
	}
	return d
}

// suite is one case: a vendor, a time, a log.
type suite struct {
	Service
	clock *Clock
	log   strings.Builder
	all   []error
}

func begin(make func(*testing.T, *Clock) Service, t *testing.T) *suite {
	c := NewClock()
	return &suite{Service: make(t, c), clock: c}
}

// process is an adapter of a process that starts now.
func (s *suite) process(t *testing.T) notice.Notifier {
	t.Helper()
	return s.New(t, s.clock, slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

func (s *suite) notify(t *testing.T, n notice.Notifier, p notice.Proposal) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := n.Notify(ctx, p)
	if err != nil {
		s.all = append(s.all, err)
	}
	return err
}

func (s *suite) told(t *testing.T, n notice.Notifier, p notice.Proposal) {
	t.Helper()
	if err := s.notify(t, n, p); err != nil {
		t.Fatalf("told of %s: %v", p.Incident, err)
	}
}

// sees wants people to see these incidents, in this order, each with its words, and no
// other message; and that no secret was said.
func (s *suite) sees(t *testing.T, want ...notice.Proposal) {
	t.Helper()
	got := s.Messages()
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d: %+v", len(got), len(want), got)
	}
	for i, p := range want {
		if got[i].Incident != p.Incident || !strings.Contains(got[i].Text, words(p)) {
			t.Errorf("message %d is of %s, want %s with %q in it:\n%s", i, got[i].Incident, p.Incident, words(p), got[i].Text)
		}
	}
	for _, secret := range s.Secrets() {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has a secret: %s", s.log.String())
		}
		for _, err := range s.all {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("an error has a secret: %v", err)
			}
		}
	}
}

// is whether an error says that a proposal is never taken.
func refused(err error) bool { return errors.Is(err, notice.ErrRefused) }
