// Package slack tells people of incidents in a Slack channel: one message an incident, which
// is edited while the incident lives, with its details and its history in the thread. A
// storm is one message for all.
//
// Begin at Notify, and at Listener for what people click and ask. What a message says is in finding.go and detail.go, how it gets there
// exactly once in post.go, what Slack takes in limits.go, what its errors mean in errors.go.
//
// Rules of this package:
//   - What comes from the cluster stands in rich text or plain text alone, where Slack reads
//     no markup; the one text that Slack does read is escaped.
//   - Nothing is posted that could unfurl, and nobody is mentioned.
//   - Of a token nothing is ever said.
package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/remediate/notice"
)

// Options of a Slack.
type Options struct {
	// Token of the bot (xoxb-…); required.
	Token string
	// Channel's id (C…); required.
	Channel string
	// Cluster is what people call the cluster; it tells its messages from another's in the
	// same channel.
	Cluster string
	// Buttons says that clicks are heard; without it messages name commands instead.
	Buttons bool
	// NoSnooze says that who hears them has nowhere to keep a snooze.
	NoSnooze bool
	// Load and Save keep what was posted where, by a key of letters, digits, "." and "-".
	// Load gives nil for a key that was never saved. What they forget is found again in the
	// channel.
	Load func(ctx context.Context, key string) ([]byte, error)
	Save func(ctx context.Context, key string, value []byte) error
	// Clock that is waited by; the machine's without it.
	Clock notice.Clock
	// Logger of what is done without being asked for; nothing is logged without it.
	Logger *slog.Logger
	// URL of Slack's API; https://slack.com/api/ without it.
	URL string
}

// Slack is a notice.Notifier.
type Slack struct {
	opts  Options
	api   *api.Client
	clock notice.Clock
	turn  chan struct{} // held by who speaks: one message after the other
	bot   string        // our own id, once Slack has said it
	last  time.Time     // of a write to the channel
}

// New makes one; it says nothing to Slack yet.
func New(o Options) (*Slack, error) {
	switch {
	case o.Token == "":
		return nil, errors.New("slack: there is no bot token")
	case o.Channel == "":
		return nil, errors.New("slack: there is no channel")
	case o.Load == nil || o.Save == nil:
		return nil, errors.New("slack: there is nowhere to keep what was posted")
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
	return &Slack{opts: o, api: newAPI(o.Token, o.URL, o.Clock), clock: o.Clock, turn: make(chan struct{}, 1)}, nil
}

// Check looks, once, whether the token is taken and the channel is one that the bot is in. The
// error says what is wrong and where to mend it; it is for an operator.
func (s *Slack) Check(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.leave()
	if err := s.known(ctx); err != nil {
		return err
	}
	_, _, err := s.channel(ctx, strconv.FormatInt(s.clock.Now().Unix(), 10), "")
	return err
}

func (s *Slack) take(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case s.turn <- struct{}{}:
	}
	if err := ctx.Err(); err != nil {
		s.leave()
		return err
	}
	return nil
}

func (s *Slack) leave() { <-s.turn }

// Notify implements notice.Notifier.
func (s *Slack) Notify(ctx context.Context, p notice.Proposal) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.leave()
	r, err := s.load(ctx, p.Incident)
	if err != nil {
		return err
	}
	if d := p.Finding; d != nil {
		r.since = d.Pods.Since
		if !r.Over.IsZero() && d.Pods.Since.After(r.Over) && p.Resolved.IsZero() {
			*r = record{key: r.key, since: r.since} // it waits again: people do not look at what is over
		}
	}
	if r.Parts == nil && r.Digest == "" && idle(p) {
		return nil
	}
	r.Over = p.Resolved
	if err := s.join(ctx, r, p); err != nil {
		return err
	}
	if r.Digest == "" && s.alone(r, p) {
		return nil
	}
	err = s.say(ctx, r, p)
	if isGone(err) { // somebody has deleted some of it: what is there is looked for again
		r.Parts = nil
		err = s.say(ctx, r, p)
	}
	return err
}

// idle says of what people were never told of that there is nothing to tell: it is over, and
// nobody has to come.
func idle(p notice.Proposal) bool {
	n := p.Plan()
	return p.Finding == nil || !p.Resolved.IsZero() && (n == nil || n.What != notice.Parked)
}

func (s *Slack) say(ctx context.Context, r *record, p notice.Proposal) error {
	if r.Digest != "" {
		return s.digest(ctx, r.Digest, p)
	}
	if err := s.show(ctx, r, "", s.finding(r, p)); err != nil {
		return err
	}
	return s.thread(ctx, r, p)
}

// thread has the details and what has happened below the message.
func (s *Slack) thread(ctx context.Context, r *record, p notice.Proposal) error {
	if p.Finding != nil {
		if err := s.show(ctx, r, details, s.details(*p.Finding)); err != nil {
			return err
		}
	}
	for _, n := range p.Plans {
		part := fmt.Sprintf("%.12s-%s", n.Plan, n.What)
		if err := s.show(ctx, r, part, s.happened(n)); err != nil {
			return err
		}
	}
	return nil
}
