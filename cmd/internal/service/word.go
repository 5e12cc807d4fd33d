package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/narrate"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/watcher/incident"
)

// worded is under which the bus keeps how a model words the newest finding of an incident. No
// place is called so.
const worded = "worded"

// wordFindings has a model word each finding once people were told of it, for as long as this
// process leads. Nothing waits for it, and what it does not word stays as it is.
func (s *Service) wordFindings(ctx context.Context) error {
	n, told, err := s.narrator()
	if err != nil || n == nil {
		return err
	}
	w := &wordsmith{Service: s, model: n, told: told}
	for {
		term, err := s.lead.Wait(ctx)
		if err != nil {
			return nil // it ends
		}
		if err := s.bus.Consume(term, bus.Diagnoses, worded, w.take); err != nil {
			return err
		}
	}
}

// wordsmith words findings, one at a time.
type wordsmith struct {
	*Service
	model *narrate.Narrator
	told  func(error) error // what may be said of an error

	mu      sync.Mutex
	trouble string // of the last
}

// take words one finding, unless that was done, or nobody waits any more. A model that gives
// nothing of use is not asked again about the same.
func (w *wordsmith) take(ctx context.Context, id string, body []byte) error {
	var d diagnosis.Summary
	if json.Unmarshal(body, &d) != nil {
		return nil // no place tells it either
	}
	over, err := w.over(ctx, id)
	if err != nil || over {
		return err
	}
	before, err := wordingOf(ctx, w.bus, d)
	if err != nil || before != nil {
		return err
	}
	said, err := w.model.Word(ctx, d)
	if ctx.Err() != nil {
		return nil // the next term begins with it
	}
	w.note(ctx, err)
	text, err := json.Marshal(said)
	if err != nil {
		return fmt.Errorf("keep how a model words %s: %w", id, err)
	}
	if err := (memory{w.bus, worded}).save(ctx, id, text); err != nil {
		return err
	}
	if sinks := w.ready.sinks.Load(); sinks != nil && len(said.Sentences) > 0 {
		for _, k := range *sinks {
			k.want(id)
		}
	}
	return nil
}

// over says whether nobody of an incident waits any more.
func (w *wordsmith) over(ctx context.Context, id string) (bool, error) {
	body, _, err := w.bus.Newest(ctx, bus.Incidents, id)
	var i incident.Incident
	return err == nil && body != nil && json.Unmarshal(body, &i) == nil && i.Resolved, err
}

// note says in the log once that a model gives nothing, and why, and once that it does again.
func (w *wordsmith) note(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := ""
	if err != nil {
		now = w.told(err).Error()
	}
	switch now {
	case w.trouble:
	case "":
		w.logger.InfoContext(ctx, "a model words findings again")
	default:
		w.logger.WarnContext(ctx, "a finding is told without a model's words", "error", now)
	}
	w.trouble = now
}

// wordingOf is how a model words that very finding; nil where none was asked.
func wordingOf(ctx context.Context, b *bus.Bus, d diagnosis.Summary) (*diagnosis.Wording, error) {
	body, err := memory{b, worded}.load(ctx, d.Incident)
	if err != nil || body == nil {
		return nil, err
	}
	var w diagnosis.Wording
	if json.Unmarshal(body, &w) != nil || w.Of != narrate.Of(d) {
		return nil, nil
	}
	return &w, nil
}

// rewordable are the places where people read at length; a page in the night and a program that
// is told have no use for it.
var rewordable = []string{"slack", "jira", settings.OnPage}

// word puts a model's words beside a finding that is to be told.
func (k *sink) word(ctx context.Context, p *notice.Proposal) error {
	if p.Finding == nil || !k.config.Narrate.Given() || !slices.Contains(rewordable, k.place) {
		return nil
	}
	w, err := wordingOf(ctx, k.bus, *p.Finding)
	if err == nil && w != nil && len(w.Sentences) > 0 {
		p.Wording = w
	}
	return err
}

// rewords tells the page of words that came later: it hears of no finding by them.
func (k *sink) rewords(ctx context.Context) func(key string, body []byte) {
	return func(key string, _ []byte) {
		if id, ok := strings.CutPrefix(key, worded+"."); ok && k.once(ctx, id) != nil && ctx.Err() == nil {
			k.want(id)
		}
	}
}
