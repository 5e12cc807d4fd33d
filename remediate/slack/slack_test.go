package slack_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/slack"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
)

// workspace is Slack, and what processes keep of it.
type workspace struct {
	*fakeslack.Server
	mu   sync.Mutex
	kept map[string][]byte
}

func newWorkspace(t *testing.T, c *notifytest.Clock) *workspace {
	t.Helper()
	w := &workspace{Server: fakeslack.New(c.Now), kept: map[string][]byte{}}
	t.Cleanup(func() {
		w.Close()
		for _, c := range w.Complaints() {
			t.Errorf("Slack would say: %s", c)
		}
	})
	return w
}

// New is a process that starts, which takes longer than the pace of a channel.
func (w *workspace) New(t *testing.T, c *notifytest.Clock, log *slog.Logger) notice.Notifier {
	t.Helper()
	if err := c.Sleep(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	return w.slack(t, c, log, "prod", true)
}

func (w *workspace) slack(t *testing.T, c *notifytest.Clock, log *slog.Logger, cluster string, buttons bool) *slack.Slack {
	t.Helper()
	s, err := slack.New(slack.Options{Token: fakeslack.Token, Channel: fakeslack.Channel, Cluster: cluster, Buttons: buttons, URL: w.URL(), Logger: log, Clock: notice.Clock{Now: c.Now, Sleep: c.Sleep},
		Load: func(_ context.Context, key string) ([]byte, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.kept[cluster+key], nil
		},
		Save: func(_ context.Context, key string, value []byte) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.kept[cluster+key] = value
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *workspace) Secrets() []string { return []string{fakeslack.Token} }

func (w *workspace) Fail(faults ...notifytest.Fault) {
	as := map[notifytest.Kind]fakeslack.Fault{notifytest.Broken: fakeslack.Code(503, 0), notifytest.Soft: fakeslack.Soft("ratelimited"), notifytest.Bad: fakeslack.Code(400, 0),
		notifytest.LostIn: fakeslack.Lost, notifytest.LostOut: fakeslack.Silent, notifytest.BadToken: fakeslack.Soft("invalid_auth"), notifytest.Hangs: fakeslack.Hangs}
	var all []fakeslack.Fault
	for _, f := range faults {
		if f.Kind == notifytest.TooMany {
			all = append(all, fakeslack.Code(429, f.After))
			continue
		}
		all = append(all, as[f.Kind])
	}
	w.Server.Fail(all...)
}

func (w *workspace) Messages() []notifytest.Message {
	var out []notifytest.Message
	for _, m := range w.Server.Messages("") {
		var about struct {
			Payload struct{ Incident string } `json:"event_payload"`
		}
		if json.Unmarshal(m.Metadata, &about) == nil {
			out = append(out, notifytest.Message{Incident: about.Payload.Incident, Text: m.Shown()})
		}
	}
	return out
}

func TestSuite(t *testing.T) {
	notifytest.Run(t, func(t *testing.T, c *notifytest.Clock) notifytest.Service { return newWorkspace(t, c) })
}

// told has people see proposals, one after the other.
func told(t *testing.T, n notice.Notifier, all ...notice.Proposal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, p := range all {
		if err := n.Notify(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
}
