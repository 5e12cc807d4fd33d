package library

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack/slackevents"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/slack"
)

func (i *ingest) slackAPI() (*slack.API, error) {
	c := i.Config.Slack
	token, err := secrets.Read("knowledge.slack.tokenFile", c.TokenFile)
	if err != nil {
		return nil, err
	}
	return slack.NewAPI(slack.APIOptions{Token: token, Channels: c.Channels, Private: c.PrivateChannels, Only: true, URL: c.url, Say: func(text string) { i.Logger.Info(text) }})
}

// slackNow is the API as it was read last: its token may be another one later.
type slackNow struct {
	make func() (*slack.API, error)

	mu  sync.Mutex
	api *slack.API
}

func (n *slackNow) renewed() (knowledge.Source, error) {
	a, err := n.make()
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.api = a
	return a, nil
}

func (n *slackNow) get() (*slack.API, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.api != nil {
		return n.api, nil
	}
	var err error
	n.api, err = n.make()
	return n.api, err
}

// news reads again what an event was about.
func (i *ingest) news(ctx context.Context, now *slackNow, body []byte) error {
	var n slack.News
	if err := json.Unmarshal(body, &n); err != nil {
		return fmt.Errorf("read news of Slack: %w", err)
	}
	a, err := now.get()
	if err != nil {
		return err
	}
	return i.take(ctx, "slack", a.Of(n))
}

// Hear hears events by a connection of its own until ctx ends, where the app is another one than
// that which people click in.
func (l *Library) Hear(ctx context.Context) error {
	token, err := secrets.Read("knowledge.slack.appTokenFile", l.Config.Slack.AppTokenFile)
	if err != nil {
		return err
	}
	slack.Listen(ctx, token, l.Config.Slack.url, func(ctx context.Context, n slack.News) error { return note(ctx, l.Bus, n) }, func(err error) {
		l.Logger.WarnContext(ctx, "what is new in Slack is not heard, it is tried again", "error", err)
	})
	return nil
}

// Overhears notes what an event of Slack's is about, for the process that reads Slack: an event
// that cannot be noted is not acknowledged, and comes again.
func Overhears(open func(context.Context) (*bus.Bus, error)) func(context.Context, slackevents.EventsAPIEvent) error {
	return func(ctx context.Context, e slackevents.EventsAPIEvent) error {
		n, ok := slack.Heard(e)
		if !ok {
			return nil
		}
		b, err := open(ctx)
		if err != nil {
			return err
		}
		return note(ctx, b, n)
	}
}

func note(ctx context.Context, b *bus.Bus, n slack.News) error {
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("note news of Slack: %w", err)
	}
	// Each says that something is new, also where it is said twice.
	return b.Publish(ctx, bus.Heard, n.Key(), fmt.Sprintf("%s-%d", n.Key(), time.Now().UnixNano()), body)
}
