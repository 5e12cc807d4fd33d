package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/remediate/plan"
)

// searchAsked is what a process that has read nothing itself, as the executor, asks those that
// have. Who may be told is decided where it is read.
type searchAsked struct {
	Place string `json:"place"`
	Query string `json:"query"`
	Most  int    `json:"most"`
}

type searchAnswered struct {
	Hits  []knowledge.Hit `json:"hits"`
	Error string          `json:"error,omitempty"`
}

// longestQuery that is answered, in bytes.
const longestQuery = 4 << 10

// answerSearches answers other processes from what this one has read.
func (s *Service) answerSearches(ctx context.Context, find placeFinder) error {
	return s.bus.Answer(ctx, bus.Search, func(ctx context.Context, body []byte) []byte {
		var a searchAnswered
		var err error
		if a.Hits, err = answerTo(ctx, find, body); err != nil {
			a.Error = err.Error()
		}
		out, err := json.Marshal(a)
		if err != nil { // a time of a document that has no JSON
			return []byte(`{"error":"what was found cannot be sent"}`)
		}
		return out
	})
}

func answerTo(ctx context.Context, find placeFinder, body []byte) ([]knowledge.Hit, error) {
	var q searchAsked
	if err := json.Unmarshal(body, &q); err != nil || len(q.Query) > longestQuery || q.Most < 1 {
		return nil, errors.New("that is no question that can be answered")
	}
	return find(ctx, q.Place, q.Query, min(q.Most, mostHits))
}

// askSearch has another process search.
func (s *Service) askSearch(ctx context.Context, place, query string, n int) ([]knowledge.Hit, error) {
	body, err := json.Marshal(searchAsked{place, query, n})
	if err != nil {
		return nil, fmt.Errorf("ask for what the team has said: %w", err)
	}
	b, err := s.late.get(ctx)
	if err != nil {
		return nil, err
	}
	body, err = b.Ask(ctx, bus.Search, body)
	if errors.Is(err, bus.ErrNobody) {
		return nil, fmt.Errorf("%w: no process that has read what the team has said is there, try again in a minute", plan.ErrRefused)
	}
	var a searchAnswered
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
