package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/knowledge"
)

// DefaultRecent is how old a thread may be to be looked at again, by default.
const DefaultRecent = 30 * 24 * time.Hour

// APIOptions of an API.
type APIOptions struct {
	// Token of an app of the own organisation (xoxb-… or xoxp-…) with the scopes
	// channels:read, channels:history, and for private channels groups:read and
	// groups:history; required.
	Token string
	// Channels are the public channels to read, by name or id.
	Channels []string
	// AllPublic are all public channels that the app is in, instead.
	AllPublic bool
	// Private are the private channels to read, by name or id. Direct messages never are.
	Private []string
	// Only says that documents of other channels are taken out, also of those that are named and
	// that the app is not in any more; without it such a name is an error.
	Only bool
	// Recent is how old a thread may be to be looked at again: what was edited or answered
	// later is known by events alone, or not at all (30 days).
	Recent time.Duration
	// Clock that is waited by; the machine's without it.
	Clock knowledge.Clock
	// Say is told once which limits Slack sets, and what it limits; nil: nobody is.
	Say func(text string)
	// Watch is told how many threads were read, and how much of the history, from 0 to 1;
	// nil: nobody is.
	Watch func(threads int, share float64)
	// URL of Slack's API; https://slack.com/api/ without it.
	URL string
}

// API is a workspace whose history is asked for. It may be used by many goroutines.
type API struct {
	opts APIOptions
	*client

	mu       sync.Mutex
	site     string // where people read, with its slash
	own      func(message) bool
	channels []channel // those that may be read; nil: not asked for yet
}

// NewAPI makes one; it says nothing to Slack yet.
func NewAPI(o APIOptions) (*API, error) {
	if o.Token == "" {
		return nil, errors.New("slack: there is no token")
	}
	if o.Recent == 0 {
		o.Recent = DefaultRecent
	}
	if o.Clock.Now == nil {
		o.Clock = knowledge.System()
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Watch == nil {
		o.Watch = func(int, float64) {}
	}
	return &API{opts: o, client: newClient(o)}, nil
}

// Read implements knowledge.Source. What was read stays read: each page is kept with a mark
// of how far it goes, and who is killed goes on there. Afterwards it reads what is new, and
// looks at recent threads again.
func (a *API) Read(ctx context.Context, to *knowledge.Intake) ([]knowledge.Whole, error) {
	all, err := a.ask(ctx, true, to)
	if err != nil {
		return nil, err
	}
	if a.opts.Only { // first: the rest may take hours
		if err := to.Only(ctx, "slack", ids(all)); err != nil {
			return nil, err
		}
	}
	read := 0
	for i, c := range all {
		r := &reader{API: a, channel: c, to: to, read: read, watch: func(read int, share float64) { a.opts.Watch(read, (float64(i)+share)/float64(len(all))) }}
		err := r.run(ctx)
		read = r.read
		if refused(err) {
			to.Skip(c.ID, "a channel that Slack does not let the app read: "+errorOf(err))
		} else if err != nil {
			return nil, fmt.Errorf("read Slack channel %s: %w", c.ID, err)
		}
	}
	return nil, nil
}

func ids(all []channel) (out []string) {
	for _, c := range all {
		out = append(out, c.ID)
	}
	return out
}

// ask says who we are and which channels may be read; again, or as it was known.
func (a *API) ask(ctx context.Context, again bool, to *knowledge.Intake) ([]channel, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.channels != nil && !again {
		return a.channels, nil
	}
	who, err := call(ctx, a.client, identify, func() (*api.AuthTestResponse, error) { return a.api.AuthTestContext(ctx) })
	if err != nil {
		return nil, err
	}
	a.site = strings.TrimSuffix(who.URL, "/") + "/"
	a.own = func(m message) bool {
		return who.BotID != "" && m.BotID == who.BotID || who.BotID != "" && m.User == who.UserID
	}
	all, err := a.list(ctx, to)
	if err != nil {
		return nil, err
	}
	a.channels = all
	return all, nil
}

// list are the channels that may be read. One that was named and is not there is an error,
// before anything is taken.
func (a *API) list(ctx context.Context, to *knowledge.Intake) ([]channel, error) {
	types := []string{"public_channel"}
	if len(a.opts.Private) > 0 {
		types = append(types, "private_channel")
	}
	var all []channel
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, err := call(ctx, a.client, listing, func() (p pageOf[api.Channel], err error) {
			p.all, p.next, err = a.api.GetConversationsContext(ctx, &api.GetConversationsParameters{Cursor: cursor, Limit: page, Types: types})
			return p, err
		})
		if err != nil {
			return nil, err
		}
		for _, c := range page.all {
			all = append(all, channel{ID: c.ID, Name: cmp.Or(c.Name, c.NameNormalized), private: c.IsPrivate, created: c.Created.Time(), outside: !c.IsMember})
		}
		cursor = page.next
	}
	out := []channel{}
	for _, c := range all {
		switch {
		case c.private && !c.among(a.opts.Private):
			to.Skip(c.ID, "a private channel that was not named")
		case !c.private && !a.opts.AllPublic && !c.among(a.opts.Channels):
		case c.outside && !a.opts.Only && (c.private || !a.opts.AllPublic):
			return nil, fmt.Errorf("the app is not in Slack channel #%s (%s): say /invite there", c.Name, c.ID)
		case c.outside:
			to.Skip(c.ID, "a "+c.kind()+" channel that the app is not in")
		default:
			out = append(out, c)
		}
	}
	there := &Export{Channels: a.opts.Channels, Private: a.opts.Private, channels: all}
	err := there.named("Slack workspace, as far as the app sees it,")
	if err != nil && a.opts.Only && len(out) > 0 { // the others are read
		to.Skip("", "a channel that was named and that the app does not see")
		a.opts.Say(err.Error())
		return out, nil
	}
	return out, err
}
