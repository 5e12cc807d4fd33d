package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	api "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"golang.org/x/sync/errgroup"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/outbound"
	"github.com/unpend/unpend/remediate/plan"
)

// Desk decides what people click, as the Kubernetes user that a caller is. What it says is one
// short text for that person. Its errors are told to them where they are plan.ErrRefused or
// plan.ErrStale; nothing was done then.
type Desk interface {
	Approve(ctx context.Context, who plan.Caller, incident, plan string) (says string, err error)
	Reject(ctx context.Context, who plan.Caller, incident, plan string) (says string, err error)
	DryRun(ctx context.Context, who plan.Caller, incident, plan string) (says string, err error)
	// Why is the finding of the incident that a pod belongs to; namespace may be empty.
	Why(ctx context.Context, who plan.Caller, pod, namespace string) (says string, err error)
	// Known is the user that a caller is.
	Known(who plan.Caller) (user string, err error)
}

// HearOptions of a Listener.
type HearOptions struct {
	// Token of the bot (xoxb-…), by which people are answered; required.
	Token string
	// AppToken (xapp-…) opens Socket Mode. Without it requests come by HTTP, and need the
	// SigningSecret of the app.
	AppToken, SigningSecret string
	// Channels in which buttons are; required.
	Channels []string
	Desk     Desk
	// Search finds what the team has said before and every reader of a channel, one of Channels,
	// may see. nil: there is nothing to search.
	Search func(ctx context.Context, channel, text string) (says string, err error)
	// Load and Save are those of Options; nil: snoozing is refused.
	Load func(ctx context.Context, key string) ([]byte, error)
	Save func(ctx context.Context, key string, value []byte) error
	// Events is told of events besides mentions, before they are acknowledged; with an error
	// they are not, and Slack sends them again. nil: nobody is.
	Events func(ctx context.Context, e slackevents.EventsAPIEvent) error
	// Clock and Logger as in Options.
	Clock  notice.Clock
	Logger *slog.Logger
	// URL of Slack's API; https://slack.com/api/ without it.
	URL string
}

// Listener hears what people click and ask in Slack.
type Listener struct {
	opts HearOptions
	api  *api.Client
	seen seen

	mu   sync.Mutex
	team string // our workspace, once Slack has said it
	work *errgroup.Group
}

// atOnce is how many clicks are worked on at the same time.
const atOnce = 16

// NewListener makes one; it says nothing to Slack yet.
func NewListener(o HearOptions) (*Listener, error) {
	switch {
	case o.Token == "":
		return nil, errors.New("slack: there is no bot token")
	case len(o.Channels) == 0:
		return nil, errors.New("slack: there is no channel")
	case o.Desk == nil:
		return nil, errors.New("slack: there is nobody to decide")
	case (o.AppToken == "") == (o.SigningSecret == ""):
		return nil, errors.New("slack: clicks come by Socket Mode (an app token) or by HTTP (a signing secret): give one of them")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock.Now == nil {
		o.Clock = notice.System()
	}
	if o.URL == "" {
		o.URL = api.APIURL
	}
	l := &Listener{opts: o, api: newAPI(o.Token, o.URL, o.Clock, api.OptionAppLevelToken(o.AppToken)), work: new(errgroup.Group), seen: newSeen(o.Clock.Now)}
	l.work.SetLimit(atOnce)
	return l, nil
}

// newAPI is Slack's client as it is used here: it follows nobody elsewhere, and tells what
// Slack says of when to come back.
func newAPI(token, url string, clock notice.Clock, more ...api.Option) *api.Client {
	client := &http.Client{Timeout: answers, Transport: outbound.Hints{RoundTripper: http.DefaultTransport, Now: clock.Now}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("a redirect, where Slack's API has none")
	}}
	return api.New(token, append(more, api.OptionHTTPClient(client), api.OptionAPIURL(url))...)
}

// do works on what was acknowledged; where too much is under way the person is told so.
func (l *Listener) do(ctx context.Context, at place, work func(context.Context) (string, error)) {
	ctx = context.WithoutCancel(ctx) // a click that was acknowledged is not lost by a reconnect
	started := l.work.TryGo(func() error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		says, err := work(ctx)
		if err != nil {
			says = l.sorry(ctx, err)
		}
		l.whisper(ctx, at, says)
		return nil
	})
	if !started {
		l.whisper(ctx, at, "Too much is asked at once. Nothing was done: try again in a moment.")
	}
}

// sorry is what a person is told of an error. What is wrong with us is for the log.
func (l *Listener) sorry(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, plan.ErrStale):
		return "Nothing was done, " + err.Error()
	case errors.Is(err, plan.ErrRefused):
		return "Nothing was done: " + err.Error()
	}
	l.opts.Logger.ErrorContext(ctx, "what somebody asked for in Slack could not be done", "error", err)
	return "That did not work, and nobody knows whether it was done: see the log of the service, or ask again."
}

// place is where a person is answered.
type place struct {
	channel, user, thread string
	reply                 string // a URL of Slack's that answers a command; used instead
}

// whisper tells one person, and nobody else.
func (l *Listener) whisper(ctx context.Context, at place, says string) {
	lines := strings.Split(says, "\n")
	for i, line := range lines {
		lines[i] = clean(line)
	}
	text := escape.Replace(fit(strings.Join(lines, "\n"), maxText))
	options := []api.MsgOption{api.MsgOptionText(text, false), api.MsgOptionDisableMarkdown(), api.MsgOptionDisableLinkUnfurl(), api.MsgOptionDisableMediaUnfurl()}
	if at.thread != "" {
		options = append(options, api.MsgOptionTS(at.thread))
	}
	if at.reply != "" {
		options = append(options, api.MsgOptionResponseURL(at.reply, api.ResponseTypeEphemeral))
	} else {
		options = append(options, api.MsgOptionPostEphemeral(at.user))
	}
	_, _, err := l.api.PostMessageContext(ctx, at.channel, options...)
	if err != nil {
		l.opts.Logger.WarnContext(ctx, "somebody in Slack has no answer", "error", l.scrub(err.Error()))
	}
}

func (l *Listener) scrub(text string) string {
	return scrub(text, l.opts.Token, l.opts.AppToken, l.opts.SigningSecret)
}

// member holds who clicks to be one of our own workspace, and no guest: Slack itself is asked,
// and who cannot be asked about is not let in.
func (l *Listener) member(ctx context.Context, user string, teams ...string) error {
	ours, err := l.ours(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(teams, func(team string) bool { return team != "" && team != ours }) {
		return fmt.Errorf("%w: you are of another workspace", plan.ErrRefused)
	}
	u, err := l.api.GetUserInfoContext(ctx, user)
	switch {
	case err != nil:
		return fmt.Errorf("%w: Slack does not say who you are: %s", plan.ErrRefused, l.scrub(err.Error()))
	case u.ID != user, u.TeamID != ours, u.IsStranger:
		return fmt.Errorf("%w: you are of another workspace", plan.ErrRefused)
	case u.IsRestricted, u.IsUltraRestricted, u.Deleted, u.IsBot:
		return fmt.Errorf("%w: guests and bots decide nothing", plan.ErrRefused)
	}
	return nil
}

// ours asks Slack, once, which workspace the app is in.
func (l *Listener) ours(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.team == "" {
		who, err := l.api.AuthTestContext(ctx)
		if err != nil {
			return "", fmt.Errorf("%w: Slack does not say which workspace this is: %s", plan.ErrRefused, l.scrub(err.Error()))
		}
		l.team = who.TeamID
	}
	return l.team, nil
}
