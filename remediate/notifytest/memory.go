package notifytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unpend/unpend/remediate/notice"
)

// Memory is a place in memory where people are told, and all that its notifiers remember. It
// passes the suite, and stands in for a vendor where another room is tested.
type Memory struct {
	mu     sync.Mutex
	faults []Fault
	writes int
	seen   []Message
	told   map[string]string // what a notifier knows to be there, by incident
}

// NewMemory is one where nobody was told of anything.
func NewMemory() *Memory { return &Memory{told: map[string]string{}} }

// New is a notifier on the place.
func (m *Memory) New(_ *testing.T, c *Clock, _ *slog.Logger) notice.Notifier {
	return m.Notifier(notice.Clock{Now: c.Now, Sleep: c.Sleep})
}

// Notifier is one that waits by a clock.
func (m *Memory) Notifier(clock notice.Clock) notice.Notifier { return &teller{m, clock} }

// Fail has the next writes answered so; those that were to fail before do not.
func (m *Memory) Fail(faults ...Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = slices.Clone(faults)
}

// Writes counts them.
func (m *Memory) Writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

// Messages are what people see.
func (m *Memory) Messages() []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen)
}

// Secrets are none.
func (m *Memory) Secrets() []string { return nil }

var (
	errAway   = errors.New("the place does not answer")
	errLocked = errors.New("the place does not let us in")
)

// write has people see a text of an incident.
func (m *Memory) write(ctx context.Context, incident, text string) error {
	m.mu.Lock()
	m.writes++
	var f Fault
	if len(m.faults) > 0 {
		f, m.faults = m.faults[0], m.faults[1:]
	}
	if f.Kind == "" || f.Kind == LostOut {
		if i := slices.IndexFunc(m.seen, func(s Message) bool { return s.Incident == incident }); i >= 0 {
			m.seen[i].Text = text
		} else {
			m.seen = append(m.seen, Message{incident, text})
		}
	}
	m.mu.Unlock()
	switch f.Kind {
	case "":
		return nil
	case Bad:
		return fmt.Errorf("%w: the place does not take it", notice.ErrRefused)
	case BadToken:
		return errLocked
	case Hangs:
		<-ctx.Done()
		return ctx.Err()
	}
	return &notice.Passing{Err: errAway, After: f.After}
}

// teller tells in memory: the place itself keeps one text an incident.
type teller struct {
	*Memory
	clock notice.Clock
}

// Notify implements notice.Notifier.
func (n *teller) Notify(ctx context.Context, p notice.Proposal) error {
	lines := []string{words(p)}
	if p.Finding != nil {
		for _, f := range p.Finding.Fixes {
			if f.Record != nil {
				lines = append(lines, f.Title+": it "+f.Record.String())
			}
		}
	}
	text := strings.Join(lines, "\n")
	if plan := p.Plan(); plan != nil {
		text += "\n" + plan.What
	}
	if !p.Resolved.IsZero() {
		text += "\nresolved"
	}
	n.mu.Lock()
	said, known := n.told[p.Incident]
	n.mu.Unlock()
	if known && said == text && ctx.Err() == nil {
		return nil
	}
	if err := notice.Retry(ctx, n.clock, func(ctx context.Context) error { return n.write(ctx, p.Incident, text) }); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told[p.Incident] = text
	return nil
}
