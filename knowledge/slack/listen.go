package slack

import (
	"context"
	"errors"
	"log/slog"
	"time"

	api "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"golang.org/x/sync/errgroup"
)

// rest is between two tries to connect, where Slack does not let us in.
const rest = 30 * time.Second

// Listen has heard deal with what events tell, by Socket Mode, until ctx ends. An event is
// acknowledged once heard has dealt with it: Slack sends it again otherwise, up to three
// times. Slack gives each event to one of an app's connections only: an app that is listened
// to elsewhere has to tell its events there. trouble is told what keeps events away.
func Listen(ctx context.Context, appToken, url string, heard func(context.Context, News) error, trouble func(error)) {
	options := []api.Option{api.OptionAppLevelToken(appToken)}
	if url != "" {
		options = append(options, api.OptionAPIURL(url))
	}
	c := &client{opts: APIOptions{Token: appToken}}
	for ctx.Err() == nil {
		err := connection(ctx, socketmode.New(api.New("", options...), socketmode.OptionLog(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo))), heard, trouble)
		if ctx.Err() != nil {
			return
		}
		trouble(c.means(ctx, "hear events of Slack", err))
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}

// connection hears by one connection, which slack-go renews, until that fails for good.
func connection(ctx context.Context, client *socketmode.Client, heard func(context.Context, News) error, trouble func(error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var hearing errgroup.Group
	hearing.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case e := <-client.Events:
				if err := deal(ctx, client, e, heard); err != nil {
					trouble(err)
				}
			}
		}
	})
	err := client.RunContext(ctx)
	cancel()
	return errors.Join(err, hearing.Wait())
}

func deal(ctx context.Context, client *socketmode.Client, e socketmode.Event, heard func(context.Context, News) error) error {
	switch data := e.Data.(type) {
	case slackevents.EventsAPIEvent:
		if n, ok := Heard(data); ok {
			if err := heard(ctx, n); err != nil {
				return err
			}
		}
	case *socketmode.ErrorBadMessage:
		return data.Cause
	}
	if e.Request == nil || e.Request.EnvelopeID == "" {
		return nil
	}
	return client.AckCtx(ctx, e.Request.EnvelopeID, nil)
}
