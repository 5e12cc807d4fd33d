package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
)

// snoozes are the incidents whose messages are left alone, kept under one key: who hears the
// click and who posts may be two processes.
type snoozes map[string]snooze

type snooze struct {
	Until time.Time `json:"until"`
	By    string    `json:"by"` // the Kubernetes user
}

// SnoozesKey is what they are kept under: who hears a click keeps them for every channel.
const SnoozesKey = "snoozed"

func readSnoozes(ctx context.Context, load func(context.Context, string) ([]byte, error)) (snoozes, error) {
	all := snoozes{}
	body, err := load(ctx, SnoozesKey)
	if err != nil {
		return nil, fmt.Errorf("read which messages are snoozed: %w", err)
	}
	if body == nil || json.Unmarshal(body, &all) != nil { // unreadable: people are told
		return snoozes{}, nil
	}
	return all, nil
}

// snooze leaves an incident's message alone for a time.
func (l *Listener) snooze(ctx context.Context, who plan.Caller, incident string) (string, error) {
	user, err := l.opts.Desk.Known(who)
	if err != nil {
		return "", err
	}
	if l.opts.Save == nil {
		return "", fmt.Errorf("%w: this process has nowhere to keep a snooze: give it bus.url", plan.ErrRefused)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Clock.Now().UTC()
	mine := snooze{Until: now.Add(snoozed).Truncate(time.Second), By: user}
	for range 3 { // another process may write at the same time
		all, err := readSnoozes(ctx, l.opts.Load)
		if err != nil {
			return "", err
		}
		if all[incident] == mine {
			return "The message of " + incident + " is left alone until " + mine.Until.Format("15:04 UTC") + ".", nil
		}
		maps.DeleteFunc(all, func(_ string, s snooze) bool { return now.Sub(s.Until) > snoozed })
		all[incident] = mine
		body, err := json.Marshal(all)
		if err == nil {
			err = l.opts.Save(ctx, SnoozesKey, body)
		}
		if err != nil {
			return "", fmt.Errorf("keep that %s is snoozed: %w", incident, err)
		}
	}
	return "", errors.New("others snooze messages again and again")
}

// Due are the incidents to be told of again though nothing is new of them: somebody has snoozed
// their message, or that is over. A restart names each once more.
func (s *Slack) Due(ctx context.Context) ([]string, error) {
	all, err := readSnoozes(ctx, s.opts.Load)
	if err != nil {
		return nil, err
	}
	s.snoozing.Lock()
	defer s.snoozing.Unlock()
	var due []string
	now := s.clock.Now()
	for id, z := range all {
		is := z.Until.String()
		if !now.Before(z.Until) {
			is = "over " + is
		}
		if s.looked[id] != is {
			s.looked[id], due = is, append(due, id)
		}
	}
	maps.DeleteFunc(s.looked, func(id string, _ string) bool { _, there := all[id]; return !there })
	return due, nil
}

// alone says whether a message is left as it is: somebody has snoozed it, it says so, and nobody
// has decided meanwhile. r learns of the snooze, for it to be said.
func (s *Slack) alone(ctx context.Context, r *record, p notice.Proposal) (bool, error) {
	all, err := readSnoozes(ctx, s.opts.Load)
	if err != nil {
		return false, err
	}
	z, there := all[p.Incident]
	if !there || !s.clock.Now().Before(z.Until) || !p.Undecided() {
		r.Snoozed = snooze{}
		return false, nil
	}
	said := r.Snoozed == z
	r.Snoozed = z
	return said, nil
}
