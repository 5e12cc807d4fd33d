package service

import (
	"context"
	"maps"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/slack"
)

// snoozing are the incidents whose messages in Slack are left alone now. Where nobody's clicks
// are heard there are none.
func (k *sink) snoozing(ctx context.Context) (map[string]notice.Snoozed, error) {
	if !k.config.Slack.Heard() {
		return nil, nil
	}
	all, err := slack.Snoozes(ctx, memory{k.bus, "slack"}.load)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(_ string, z notice.Snoozed) bool { return !k.now().Before(z.Until) })
	return all, nil
}

// snoozedOf is who has snoozed an incident; nil: nobody, or no more.
func (k *sink) snoozedOf(ctx context.Context, incident string) (*notice.Snoozed, error) {
	all, err := k.snoozing(ctx)
	if z, is := all[incident]; is && err == nil {
		return &z, nil
	}
	return nil, err
}

// snoozes has every place told once that somebody has snoozed an incident, and that this is
// over: the bus has no news of either. A restart tells of each once more.
func (k *sink) snoozes(ctx context.Context) {
	now, err := k.snoozing(ctx)
	if err != nil {
		k.note(ctx, err)
		return
	}
	k.mu.Lock()
	was := k.snoozed
	k.snoozed = now
	k.mu.Unlock()
	for id, z := range now {
		if was[id] != z {
			k.want(id)
		}
	}
	for id := range was {
		if _, still := now[id]; !still {
			k.want(id)
		}
	}
}
