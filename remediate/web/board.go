package web

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/unpend/unpend/remediate/notice"
)

// over is how long an incident is shown that is over, and mostOver how many of those.
const (
	over     = 24 * time.Hour
	mostOver = 100
)

// board has the newest that was told of each incident.
type board struct {
	mu   sync.Mutex
	all  map[string]notice.Proposal
	wake chan struct{} // closed at the next change
}

func newBoard() *board { return &board{all: map[string]notice.Proposal{}, wake: make(chan struct{})} }

// Notify has the page show what is known of an incident now. It refuses nothing.
func (p *Page) Notify(_ context.Context, proposal notice.Proposal) error {
	p.board.put(proposal, p.opts.Now())
	return nil
}

func (b *board) put(p notice.Proposal, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[p.Incident] = p
	b.forget(now)
	close(b.wake)
	b.wake = make(chan struct{})
}

// forget drops what has been over for long: it is no use to anybody, and would grow for ever.
func (b *board) forget(now time.Time) {
	var ended []notice.Proposal
	for id, p := range b.all {
		switch {
		case p.Resolved.IsZero():
		case now.Sub(p.Resolved) > over:
			delete(b.all, id)
		default:
			ended = append(ended, p)
		}
	}
	if len(ended) <= mostOver {
		return
	}
	slices.SortFunc(ended, func(a, b notice.Proposal) int { return b.Resolved.Compare(a.Resolved) })
	for _, p := range ended[mostOver:] {
		delete(b.all, p.Incident)
	}
}

func (b *board) get(id string) (notice.Proposal, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.all[id]
	return p, ok
}

func (b *board) list() []notice.Proposal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.all))
}

// changed is closed once something has changed since it was asked for.
func (b *board) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wake
}
