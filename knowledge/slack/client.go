package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	api "github.com/slack-go/slack"
	"golang.org/x/time/rate"

	"github.com/unpend/unpend/knowledge"
)

const (
	// page is how many messages are asked for at once; Slack recommends no more than 200:
	// https://docs.slack.dev/apis/web-api/pagination
	page = 200
	// fewest is what apps get instead that are distributed outside of Slack's Marketplace, once
	// a minute: https://docs.slack.dev/changelog/2025/05/29/rate-limit-changes-for-non-marketplace-apps
	fewest = 15
	// burst is how many calls of a method may come at once: Slack counts them by the minute.
	burst = 10
	// answers is how long one answer may take.
	answers = 60 * time.Second
	// maxAnswer bounds one: 200 messages of 40,000 characters, with what hangs on them.
	maxAnswer = 64 << 20
)

// method is one of Slack's, with how often it may be called by an app of the own
// organisation: https://docs.slack.dev/apis/web-api/rate-limits
type method struct {
	name, doing string
	every       time.Duration
}

var (
	identify  = method{"auth.test", "ask Slack who we are", 0}
	listing   = method{"conversations.list", "list Slack's channels", time.Minute / 20}
	histories = method{"conversations.history", "read a Slack channel", time.Minute / 50}
	threads   = method{"conversations.replies", "read a Slack thread", time.Minute / 50}
)

// client asks Slack no faster than it allows.
type client struct {
	opts APIOptions
	api  *api.Client

	mu    sync.Mutex
	paces map[string]*rate.Limiter
	few   bool // Slack gives little, once a minute
	told  bool
}

// pageOf is a page of a list, and where the next one begins; empty: nowhere.
type pageOf[T any] struct {
	all  []T
	next string
	more bool
}

func newClient(o APIOptions) *client {
	hc := &http.Client{Timeout: answers, Transport: bounded{http.DefaultTransport, o.Clock.Now}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("a redirect, where Slack's API has none")
	}}
	options := []api.Option{api.OptionHTTPClient(hc)}
	if o.URL != "" {
		options = append(options, api.OptionAPIURL(o.URL))
	}
	return &client{opts: o, api: api.New(o.Token, options...), paces: map[string]*rate.Limiter{}}
}

// call asks until there is an answer, or an error that does not pass.
func call[T any](ctx context.Context, c *client, m method, ask func() (T, error)) (out T, err error) {
	err = c.opts.Clock.Patiently(ctx, func() error {
		if err := c.wait(ctx, m); err != nil {
			return err
		}
		var said error
		out, said = ask()
		return c.means(ctx, m.doing, said)
	})
	return out, err
}

// wait keeps the pace of a method.
func (c *client) wait(ctx context.Context, m method) error {
	if m.every == 0 {
		return ctx.Err()
	}
	now := c.opts.Clock.Now()
	c.mu.Lock()
	pace := c.paces[m.name]
	if pace == nil {
		pace = rate.NewLimiter(rate.Every(m.every), burst)
		c.paces[m.name] = pace
	}
	left := pace.ReserveN(now, 1).DelayFrom(now)
	c.mu.Unlock()
	if left <= 0 {
		return ctx.Err()
	}
	return c.opts.Clock.Sleep(ctx, left)
}

// probed learns from an answer which limits hold: Slack gives apps that it limits no more
// than 15 messages, whatever they ask for.
func (c *client) probed(messages int, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told || !more {
		return // a short channel says nothing
	}
	c.told, c.few = true, messages <= fewest
	if !c.few {
		c.opts.Say("Slack lets this app read 50 pages a minute (Tier 3)")
		return
	}
	for _, m := range []method{histories, threads} {
		c.paces[m.name] = rate.NewLimiter(rate.Every(time.Minute), 1)
		c.paces[m.name].AllowN(c.opts.Clock.Now(), 1) // the one that was answered
	}
	c.opts.Say("Slack lets this app read 15 messages a minute, as it does apps that are distributed outside of its Marketplace: an internal app of your own organisation reads 50 pages a minute, and so does an export")
}

// remedies say where to mend what an operator can mend.
var remedies = map[string]string{
	"invalid_auth":           "the token is not one, or of another workspace: install the app again and use its new token",
	"not_authed":             "the token is empty",
	"token_revoked":          "the token was revoked: install the app again and use its new token",
	"token_expired":          "the token has expired: install the app without token rotation",
	"account_inactive":       "the app is deactivated in the workspace: ask its administrators",
	"missing_scope":          "the app needs the scopes channels:read and channels:history, for private channels also groups:read and groups:history: add them and install it again",
	"not_allowed_token_type": "this kind of token may not read it: use a bot's (xoxb-…) or a user's (xoxp-…)",
}

// ofChannel are errors that are about one channel.
var ofChannel = []string{"channel_not_found", "not_in_channel", "is_archived", "channel_type_not_supported"}

// refused is whether Slack does not let us read a channel.
func refused(err error) bool { return slices.Contains(ofChannel, errorOf(err)) }

// errorOf is Slack's name of an error; empty where it is none of Slack's.
func errorOf(err error) string {
	if e, ok := errors.AsType[api.SlackErrorResponse](err); ok {
		return e.Err
	}
	return ""
}

// passes are errors that pass by themselves.
var passes = []string{"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}

// means is what an error of Slack's client means to us. No token is in it.
func (c *client) means(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[api.SlackErrorResponse](err); ok {
		says := e.Err
		if e.Needed != "" {
			says += " (needed: " + e.Needed + ")"
		}
		if remedy := remedies[e.Err]; remedy != "" {
			says += ": " + remedy
		}
		out := &saying{fmt.Sprintf("%s: Slack says %s", doing, c.scrub(says)), err}
		if slices.Contains(passes, e.Err) {
			return &knowledge.Passing{Err: out}
		}
		return out
	}
	out := &saying{doing + ": " + c.scrub(err.Error()), err}
	if slow, ok := errors.AsType[*busy](err); ok {
		return &knowledge.Passing{Err: out, After: slow.after}
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, shape := errors.AsType[*json.UnmarshalTypeError](err)
	_, large := errors.AsType[*http.MaxBytesError](err)
	if status, ok := errors.AsType[*answer](err); syntax || shape || large || ok && status.code < http.StatusInternalServerError {
		return out
	}
	return &knowledge.Passing{Err: out}
}

// saying is an error of which only the words are shown.
type saying struct {
	words string
	is    error
}

func (e *saying) Error() string { return e.words }

func (e *saying) Unwrap() error { return e.is }

func (c *client) scrub(text string) string { return strings.ReplaceAll(text, c.opts.Token, "(token)") }

// answer is one that is no success.
type answer struct{ code int }

func (e *answer) Error() string {
	return fmt.Sprintf("the answer is %d %s", e.code, http.StatusText(e.code))
}

// busy is an answer of a server that names a time to come back.
type busy struct {
	answer
	after time.Duration
}

// bounded bounds answers, and keeps what slack-go drops of those that are no success.
type bounded struct {
	next http.RoundTripper
	now  func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if a.StatusCode == http.StatusOK {
		a.Body = http.MaxBytesReader(nil, a.Body, maxAnswer)
		return a, nil
	}
	a.Body.Close()
	if after := knowledge.RetryAfter(a.Header, b.now()); after > 0 || a.StatusCode == http.StatusTooManyRequests {
		return nil, &busy{answer{a.StatusCode}, after}
	}
	return nil, &answer{a.StatusCode}
}
