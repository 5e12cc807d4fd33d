package library

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/knowledge"
)

// asked is what a process that has read nothing itself, as the executor, asks those that have.
// Who may be told is decided where it is read.
type asked struct {
	Place string `json:"place"`
	Query string `json:"query"`
	Most  int    `json:"most"`
}

type reply struct {
	Hits  []knowledge.Hit `json:"hits"`
	Error string          `json:"error,omitempty"`
}

// MostHits answer one search, wherever it is asked for.
const MostHits = 5

// longestQuery that is answered, in bytes.
const longestQuery = 4 << 10

// Answer answers other processes from what this one has read, until ctx ends.
func (l *Library) Answer(ctx context.Context) error {
	return l.Bus.Answer(ctx, bus.Search, func(ctx context.Context, body []byte) []byte {
		var a reply
		var err error
		if a.Hits, err = l.answer(ctx, body); err != nil {
			a.Error = err.Error()
		}
		out, err := json.Marshal(a)
		if err != nil { // a time of a document that has no JSON
			return []byte(`{"error":"what was found cannot be sent"}`)
		}
		return out
	})
}

func (l *Library) answer(ctx context.Context, body []byte) ([]knowledge.Hit, error) {
	var q asked
	if err := json.Unmarshal(body, &q); err != nil || len(q.Query) > longestQuery || q.Most < 1 {
		return nil, errors.New("that is no question that can be answered")
	}
	return l.Find(ctx, q.Place, q.Query, min(q.Most, MostHits))
}

// Ask has another process find what is like a query and may be told in a place. The error is
// bus.ErrNobody where there is none that has read anything.
func Ask(ctx context.Context, b *bus.Bus, place, query string, n int) ([]knowledge.Hit, error) {
	body, err := json.Marshal(asked{place, query, n})
	if err != nil {
		return nil, fmt.Errorf("ask for what the team has said: %w", err)
	}
	body, err = b.Ask(ctx, bus.Search, body)
	var a reply
	if err == nil {
		err = json.Unmarshal(body, &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for what the team has said: %w", err)
	}
	return a.Hits, nil
}
