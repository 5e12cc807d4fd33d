package slack_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slack-go/slack/slackevents"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/slack"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
)

// Who wants to know is told of what is said before Slack is told that it came: what could not
// be noted comes again.
func TestEventsAreHandedOn(t *testing.T) {
	c := notifytest.NewClock()
	h := &heard{newWorkspace(t, c), &ledger{}, &strings.Builder{}}
	var mu sync.Mutex
	var told []string
	full := errors.New("no room")
	o := h.options(notice.Clock{Now: c.Now, Sleep: c.Sleep})
	o.Events = func(_ context.Context, e slackevents.EventsAPIEvent) error {
		mu.Lock()
		defer mu.Unlock()
		m, ok := e.InnerEvent.Data.(*slackevents.MessageEvent)
		if !ok {
			return nil
		}
		told = append(told, m.Channel+" "+m.Text)
		err := full
		full = nil
		return err
	}
	l, err := slack.NewListener(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	until(t, "two connections are open", func() bool { return h.Lines() == 2 })
	says := func(id string) error {
		return h.Send("events_api", map[string]any{"type": "event_callback", "team_id": fakeslack.Team, "event_id": id,
			"event": map[string]any{"type": "message", "channel": "C0TEAM", "channel_type": "channel", "user": "U1", "text": id, "ts": "1.1", "event_ts": "1.1"}})
	}
	if err := says("Ev1"); err == nil {
		t.Error("what could not be noted was acknowledged")
	}
	for _, id := range []string{"Ev1", "Ev2"} {
		if err := says(id); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"C0TEAM Ev1", "C0TEAM Ev1", "C0TEAM Ev2"}; !slices.Equal(told, want) || len(h.all()) > 0 {
		t.Errorf("told %q, asked %q", told, h.all())
	}
}
