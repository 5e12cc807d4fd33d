package slack

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/remediate/slack/fakeslack"
)

// Events are acknowledged once they were dealt with; what is none of ours at once.
func TestListen(t *testing.T) {
	s := fakeslack.New(time.Now)
	var mu sync.Mutex
	var got []News
	full := errors.New("no room")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Listen(ctx, fakeslack.AppToken, s.URL(), func(_ context.Context, n News) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, n)
			err := full
			full = nil
			return err
		}, func(err error) { t.Log(err) })
	}()
	t.Cleanup(func() { cancel(); <-ended; s.Close() })
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); s.Lines() == 0; {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("nobody connects")
		}
	}
	sends := func(inner map[string]any) error {
		return s.Send("events_api", map[string]any{"type": "event_callback", "team_id": fakeslack.Team, "event_id": "Ev1", "event": inner})
	}
	message := map[string]any{"type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": "Xid 79", "ts": ts(1), "event_ts": ts(1)}
	if err := sends(message); err == nil {
		t.Error("what could not be noted was acknowledged")
	}
	for _, inner := range []map[string]any{message, {"type": "channel_rename", "channel": map[string]any{"id": "C1", "name": "gpus", "created": 1}}, {"type": "app_mention", "channel": "C1", "user": "U1", "text": "x", "ts": ts(1)}} {
		if err := sends(inner); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]News{{"C1", ts(1)}, {"C1", ts(1)}, {"C1", ""}}, got); diff != "" {
		t.Error(diff)
	}
}
