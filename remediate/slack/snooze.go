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

// SnoozesKey is what they are kept under: who hears a click keeps them for every channel, and
// who hears and who posts may be two processes.
const SnoozesKey = "snoozed"

// Snoozes are the incidents whose messages somebody wants left alone, also those of which that
// is over.
func Snoozes(ctx context.Context, load func(context.Context, string) ([]byte, error)) (map[string]notice.Snoozed, error) {
	all := map[string]notice.Snoozed{}
	body, err := load(ctx, SnoozesKey)
	if err != nil {
		return nil, fmt.Errorf("read which messages are snoozed: %w", err)
	}
	if body == nil || json.Unmarshal(body, &all) != nil { // unreadable: people are told
		return map[string]notice.Snoozed{}, nil
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
	now := l.opts.Clock.Now().UTC().Truncate(time.Second)
	mine := notice.Snoozed{By: user, At: now, Until: now.Add(snoozed)}
	for range 3 { // another process may write at the same time
		all, err := Snoozes(ctx, l.opts.Load)
		if err != nil {
			return "", err
		}
		if all[incident] == mine {
			return "The message of " + incident + " is left alone until " + mine.Until.Format("15:04 UTC") + ".", nil
		}
		maps.DeleteFunc(all, func(_ string, s notice.Snoozed) bool { return now.Sub(s.Until) > snoozed })
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

// alone says whether a message is left as it is: somebody has snoozed it, it says so, and nobody
// has decided meanwhile. r learns of the snooze, for it to be said.
func (s *Slack) alone(r *record, p notice.Proposal) bool {
	if p.Snoozed == nil || !p.Undecided() {
		r.Snoozed = notice.Snoozed{}
		return false
	}
	said := r.Snoozed == *p.Snoozed
	r.Snoozed = *p.Snoozed
	return said
}
