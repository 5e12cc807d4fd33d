// Package library is what the team has said, as one process of several has it: the one that
// leads reads Slack, Jira and what plans came to, the bus brings that to all, and each finds in
// its own what may be told where it is asked.
package library

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/knowledge"
)

// Outcome is the source of what plans came to: it names pods of whatever namespace.
const Outcome = "outcome"

// Options say what a process is to have, and what it does for the others.
type Options struct {
	Config Config
	// Allow are the addresses inside that may be spoken to (outbound.allow).
	Allow []string
	// Bus brings documents to every process.
	Bus *bus.Bus
	// Lead waits until this process leads: the context is that of its term, the error that of
	// the one it waits in.
	Lead func(context.Context) (context.Context, error)
	// Outcomes are what plans came to.
	Outcomes knowledge.Outcomes
	// Quotes: findings are made here, which quote what was said; Reads: Slack and Jira are read
	// here, where this process leads.
	Quotes, Reads bool
	// Off is told what is off, and why, until this process starts again.
	Off        func(what string, why error)
	Now        func() time.Time
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Library is what this process has. Each process has one of its own: what is read from Slack
// and Jira it gets from the bus, and loses nothing with its disk.
type Library struct {
	Options
	index     *knowledge.Index
	kept      *knowledge.Library // nil: there is only a folder, or nothing is shared
	meaning   *meaning           // nil: words find alone
	temporary *temporary         // nil: the folder is kept
	full      chan struct{}      // closed when it has all that the bus had
	filled    sync.Once
}

// Open is nil where no knowledge is configured. What it opens is closed by Close.
func Open(ctx context.Context, o Options) (*Library, error) {
	c := o.Config
	switch {
	case !c.Given():
		return nil, nil
	case !c.Keeps():
		index, err := knowledge.OpenFolder(ctx, c.Folder)
		if err != nil {
			return nil, fmt.Errorf("read knowledge: %w", err)
		}
		for _, why := range index.Skipped() {
			o.Logger.WarnContext(ctx, "a document of the knowledge folder is left out", "why", why)
		}
		return &Library{Options: o, index: index}, nil
	}
	l := &Library{Options: o, full: make(chan struct{})}
	dir, err := c.Library, error(nil)
	if dir == "" {
		if err := sweep(); err != nil {
			o.Logger.WarnContext(ctx, "what a process that was killed had of what the team has said stays on disk", "error", err)
		}
		if l.temporary, err = newTemporary(); err != nil {
			return nil, err
		}
		dir = l.temporary.dir
	}
	if l.kept, err = knowledge.EditLibrary(dir); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.index = l.kept.Index
	if l.meaning, err = l.meaningIfThere(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if c.Folder != "" {
		if err := l.shelve(ctx, c.Folder); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// meaningIfThere is nil too where the model's key is not there: words find alone, which the log
// and /readyz say. Who only tells people has no such key.
func (l *Library) meaningIfThere(ctx context.Context) (*meaning, error) {
	if !l.Quotes {
		return nil, nil
	}
	if why := secrets.Missing(l.Config.Embeddings.KeyFile); why != nil {
		const off = "documents are found by their words alone"
		l.Logger.ErrorContext(ctx, "a part is off until its file is there and this process starts again", "part", off, "error", why)
		l.Off(off, why)
		return nil, nil
	}
	return l.newMeaning()
}

// shelve reads the folder, which every process has of its own.
func (l *Library) shelve(ctx context.Context, folder string) error {
	done, err := l.kept.Import(ctx, knowledge.Folder{Dir: folder}, "doc", folder, time.Now())
	if err != nil {
		return fmt.Errorf("read knowledge: %w", err)
	}
	for why, n := range done.Skipped {
		l.Logger.WarnContext(ctx, "documents of the knowledge folder are left out", "why", why, "documents", n)
	}
	return nil
}

// Find finds what is like a query and may be told in a place, at most n, best first.
func (l *Library) Find(ctx context.Context, place, query string, n int) ([]knowledge.Hit, error) {
	return l.Quote(ctx, place, []string{query}, n)
}

// Quote is Find for phrases, as a diagnosis has them.
func (l *Library) Quote(ctx context.Context, place string, phrases []string, n int) ([]knowledge.Hit, error) {
	may := l.Config.Audience().In(place)
	if l.meaning != nil {
		return l.meaning.search(ctx, may, phrases, n)
	}
	return l.index.SearchFor(ctx, may, phrases, n)
}

// Close ends it; what was written is written. Nothing happens where there is none.
func (l *Library) Close() error {
	if l == nil {
		return nil
	}
	var err error
	if l.index != nil {
		err = l.index.Close()
	}
	return errors.Join(err, l.temporary.remove())
}
