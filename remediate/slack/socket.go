package slack

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	api "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"golang.org/x/sync/errgroup"
)

const (
	// connections are open at once: in the gap in which one is renewed, people who click would
	// see an error. Slack allows 10: https://docs.slack.dev/apis/events-api/using-socket-mode
	connections = 2
	// rest is between two tries to connect, where Slack does not let us in.
	rest = 30 * time.Second
)

// Run hears by Socket Mode until ctx ends, and what was heard is done. A Slack that does not
// let us in is tried again; without an app token it only waits.
func (l *Listener) Run(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { <-ctx.Done(); return nil })
	if l.opts.AppToken != "" {
		for range connections {
			all.Go(func() error { return l.connected(ctx) })
		}
	}
	err := all.Wait()
	return errors.Join(err, l.work.Wait())
}

// connected keeps one connection.
func (l *Listener) connected(ctx context.Context) error {
	for ctx.Err() == nil {
		err := l.connection(ctx)
		if ctx.Err() != nil {
			break
		}
		text := l.scrub(err.Error())
		if remedy := remedies[text]; remedy != "" {
			text += ": " + strings.ReplaceAll(strings.ReplaceAll(remedy, "bot token", "app token"), "slack.tokenFile", "slack.appTokenFile")
		}
		l.opts.Logger.ErrorContext(ctx, "what people click in Slack is not heard, it is tried again", "error", text)
		if l.opts.Clock.Sleep(ctx, rest) != nil {
			break
		}
	}
	return nil
}

// connection hears by one connection, which slack-go renews, until that fails for good.
func (l *Listener) connection(ctx context.Context) error {
	client := socketmode.New(l.api, socketmode.OptionLog(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var hearing errgroup.Group
	hearing.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case e := <-client.Events:
				l.event(ctx, client, e)
			}
		}
	})
	err := client.RunContext(ctx)
	cancel()
	return errors.Join(err, hearing.Wait())
}

// event acknowledges what came, for Slack waits 3 s, and then has it done.
func (l *Listener) event(ctx context.Context, client *socketmode.Client, e socketmode.Event) {
	if data, ok := e.Data.(slackevents.EventsAPIEvent); ok && !l.hand(ctx, data) {
		return
	}
	if e.Request != nil && e.Request.EnvelopeID != "" {
		if err := client.AckCtx(ctx, e.Request.EnvelopeID, nil); err != nil {
			l.opts.Logger.WarnContext(ctx, "Slack is not told that a request came", "error", l.scrub(err.Error()))
		}
		if !l.seen.first(e.Request.EnvelopeID) {
			return
		}
	}
	switch data := e.Data.(type) {
	case api.InteractionCallback:
		l.clicked(ctx, data)
	case api.SlashCommand:
		l.commanded(ctx, data)
	case slackevents.EventsAPIEvent:
		l.mentioned(ctx, data)
	case *socketmode.ErrorBadMessage:
		l.opts.Logger.WarnContext(ctx, "what Slack sends cannot be read, and is left out", "error", l.scrub(data.Cause.Error()))
	case *api.ConnectionErrorEvent:
		l.opts.Logger.WarnContext(ctx, "Slack lets no connection through", "attempt", data.Attempt, "error", l.scrub(data.ErrorObj.Error()))
	}
}

func (l *Listener) commanded(ctx context.Context, c api.SlashCommand) {
	if c.Command == Command && c.UserID != "" && l.answerable(c.ResponseURL) {
		l.asked(ctx, place{channel: c.ChannelID, user: c.UserID, reply: c.ResponseURL}, c.TeamID, c.Text)
	}
}

// hand tells of an event, and says whether it may be acknowledged.
func (l *Listener) hand(ctx context.Context, e slackevents.EventsAPIEvent) bool {
	if l.opts.Events == nil {
		return true
	}
	err := l.opts.Events(ctx, e)
	if err != nil {
		l.opts.Logger.WarnContext(ctx, "an event of Slack's cannot be noted, it is sent again", "error", l.scrub(err.Error()))
	}
	return err == nil
}

// mentioned is a question in a channel. Slack sends it up to three times.
func (l *Listener) mentioned(ctx context.Context, e slackevents.EventsAPIEvent) {
	m, ok := e.InnerEvent.Data.(*slackevents.AppMentionEvent)
	if !ok || m.BotID != "" || m.User == "" {
		return
	}
	if outer, ok := e.Data.(*slackevents.EventsAPICallbackEvent); ok && !l.seen.first("event "+outer.EventID) {
		return
	}
	l.asked(ctx, place{channel: m.Channel, user: m.User, thread: m.ThreadTimeStamp}, e.TeamID, m.Text)
}
