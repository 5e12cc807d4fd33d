package library

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/knowledge"
)

// stock brings what the bus has to the library, until ctx ends.
func (l *Library) stock(ctx context.Context) error {
	l.Bus.Replicate(ctx, bus.Documents, func(ctx context.Context, bodies [][]byte, all bool) error {
		var changes []knowledge.Change
		for _, body := range bodies {
			var c knowledge.Change
			if err := json.Unmarshal(body, &c); err != nil || c.ID == "" {
				l.Logger.WarnContext(ctx, "a document on the bus cannot be read and is left out", "error", err)
				continue
			}
			changes = append(changes, c)
		}
		if err := l.kept.Apply(ctx, changes); err != nil {
			return err
		}
		if all {
			l.filled.Do(func() { close(l.full) })
		}
		return nil
	}, func(err error) {
		l.Logger.WarnContext(ctx, "what the team has said is read from the bus again", "error", err)
	})
	return nil
}

// restock hands to all what this process has kept and the bus has lost: a source is not read
// again from its beginning.
func (l *Library) restock(ctx context.Context) error {
	there, err := l.Bus.Keys(ctx, bus.Documents)
	if err != nil {
		return err
	}
	return l.kept.Changes(ctx, []string{"slack", "jira", Outcome}, func(c knowledge.Change) error {
		if there[c.Key()] {
			return nil
		}
		return l.hand(ctx, c)
	})
}

// hand brings a change to every process; where nothing is shared, each reads for itself.
func (l *Library) hand(ctx context.Context, c knowledge.Change) error {
	if !l.Config.Shared() {
		return l.kept.Apply(ctx, []knowledge.Change{c})
	}
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("tell of document %s: %w", c.ID, err)
	}
	id := fmt.Sprintf("%s-%d", strings.ReplaceAll(c.Key(), ".", "-"), time.Now().UnixNano())
	// One process reads a source: what it says now is so.
	return l.Bus.PublishNewer(ctx, bus.Documents, c.Key(), id, body, func([]byte) bool { return false })
}

// settled is how long it is waited for what was handed on to come back.
const settled = 10 * time.Second

// settle waits until this process has what it handed on: what is read next is compared with
// it. Where that does not come, a comparison is off by that, until the next.
func (l *Library) settle(ctx context.Context, last knowledge.Change) {
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if there, err := l.kept.Holds(last); there || err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
