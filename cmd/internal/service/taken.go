package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/watcher/webhook"
)

// takenPlace is under which it is kept who sees to an incident. No place is called so.
const takenPlace = "taken"

// taken is who sees to an incident, or that nobody does any more: the last word, by its time.
type taken struct {
	notice.Taken
	Sees bool `json:"sees"`
}

func loadTaken(ctx context.Context, b *bus.Bus, incident string) (t taken, err error) {
	body, err := memory{b, takenPlace}.load(ctx, incident)
	if body != nil && json.Unmarshal(body, &t) != nil {
		t = taken{} // unreadable is nobody: it decides nothing
	}
	return t, err
}

// said keeps what people say in PagerDuty of pages of this cluster, and has every place told
// that shows the incident. It decides nothing: a plan is approved where people see it and its
// hash. An older word than the last is a replay, or came late, and changes nothing.
func (s *Service) said(id string) func(context.Context, webhook.Said) error {
	return func(ctx context.Context, says webhook.Said) error {
		incident, ours := strings.CutSuffix(says.Key, "."+id)
		if !ours || incident == "" || strings.ContainsAny(incident, ".*> \t\r\n") {
			return nil
		}
		if s.lead.Leads(ctx) == nil {
			return errors.New("another process is the one that tells people")
		}
		if known, _, err := s.bus.Newest(ctx, bus.Incidents, incident); err != nil || known == nil {
			return err
		}
		last, err := loadTaken(ctx, s.bus, incident)
		if err != nil || !says.At.After(last.At) {
			return err
		}
		body, err := json.Marshal(taken{notice.Taken{By: says.By, In: "PagerDuty", At: says.At}, says.Sees})
		if err == nil {
			err = memory{s.bus, takenPlace}.save(ctx, incident, body)
		}
		if err != nil {
			return fmt.Errorf("keep who sees to %s: %w", incident, err)
		}
		if sinks := s.ready.sinks.Load(); sinks != nil {
			for _, k := range *sinks {
				k.want(incident)
			}
		}
		return nil
	}
}

// takenOf is who sees to an incident since it waits; nil: nobody.
func (k *sink) takenOf(ctx context.Context, incident string, since time.Time) (*notice.Taken, error) {
	t, err := loadTaken(ctx, k.bus, incident)
	if err != nil || !t.Sees || t.At.Before(since) {
		return nil, err
	}
	return &t.Taken, nil
}

// takenNews has an incident told of again once somebody has said that they see to it, whichever
// process has heard that, until ctx ends.
func (k *sink) takenNews(ctx context.Context) error {
	k.bus.Follow(ctx, bus.Told, func(key string, _ []byte) {
		if incident, is := strings.CutPrefix(key, takenPlace+"."); is {
			k.want(incident)
		}
	}, k.followsAgain(ctx))
	return nil
}

// want has an incident told of again soon.
func (k *sink) want(incident string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted == nil {
		k.wanted = map[string]bool{}
	}
	k.wanted[incident] = true
}

// tellWanted tells of what was wanted; what fails is wanted still.
func (k *sink) tellWanted(ctx context.Context) {
	k.mu.Lock()
	all := k.wanted
	k.wanted = nil
	k.mu.Unlock()
	for id := range all {
		if k.once(ctx, id) != nil {
			k.want(id)
		}
	}
}
