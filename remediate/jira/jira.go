// Package jira keeps one ticket an incident in Jira, on Cloud or on Data Center: found
// before it is made, edited while the incident lives, with a comment for each thing that
// happens, and closed when nobody waits any more.
//
// Begin at Notify. How there comes to be exactly one ticket is in ticket.go, what it says in
// describe.go, how that is written for Cloud and for Data Center in adf.go and wiki.go, what
// the project has to have in check.go, what Jira's answers mean in call.go.
//
// Rules of this package:
//   - What comes from the cluster is text: in a document it stands in text nodes alone, in
//     wiki markup every character that could mark something is escaped.
//   - Before anything that Jira would do twice is asked for, it is kept that it is.
//   - A ticket that a person closes stays closed for as long as the same wait goes on.
//   - Of a token nothing is ever said.
package jira

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	api "github.com/andygrunwald/go-jira"

	"github.com/unpend/unpend/remediate/notice"
)

// Jira is a notice.Notifier.
type Jira struct {
	opts  Options
	api   *api.Client
	speak dialect
	clock notice.Clock
	turn  chan struct{} // held by who speaks: one ticket after the other
	meta  *meta         // nil until the project was looked at
}

// New makes one; it says nothing to Jira yet.
func New(o Options) (*Jira, error) {
	if err := o.whole(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock.Now == nil {
		o.Clock = notice.System()
	}
	client, err := api.NewClient(authorized{o}, o.URL)
	if err != nil {
		return nil, fmt.Errorf("jira.url: %w", err)
	}
	return &Jira{opts: o, api: client, speak: dialects[o.Deployment], clock: o.Clock, turn: make(chan struct{}, 1)}, nil
}

// Check looks, once, whether the project takes the tickets that are to be made. The error
// says what it lacks and where to mend it; it is for an operator.
func (j *Jira) Check(ctx context.Context) error {
	if err := j.take(ctx); err != nil {
		return err
	}
	defer j.leave()
	return j.check(ctx)
}

func (j *Jira) take(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case j.turn <- struct{}{}:
	}
	if err := ctx.Err(); err != nil {
		j.leave()
		return err
	}
	return nil
}

func (j *Jira) leave() { <-j.turn }

// Notify implements notice.Notifier.
func (j *Jira) Notify(ctx context.Context, p notice.Proposal) error {
	if err := j.take(ctx); err != nil {
		return err
	}
	defer j.leave()
	r, err := j.load(ctx, p.Incident)
	if err != nil {
		return err
	}
	if r.ID == "" && r.Tried.IsZero() && idle(p) {
		return nil
	}
	if err := j.check(ctx); err != nil {
		return err
	}
	if err := j.again(ctx, r, p); err != nil {
		return err
	}
	err = j.tell(ctx, r, p)
	if isGone(err) { // somebody has deleted it, or taken it elsewhere: what is there is looked for again
		r.forget()
		err = j.tell(ctx, r, p)
	}
	return err
}

// idle says of what people were never told of that there is nothing to tell: it is over, and
// nobody has to come.
func idle(p notice.Proposal) bool { return p.Finding == nil || !p.Resolved.IsZero() && !parked(p) }

// parked says whether somebody has to come, also once nobody waits any more.
func parked(p notice.Proposal) bool {
	n := p.Plan()
	return n != nil && n.What == notice.Parked
}

// again begins another ticket where a wait begins so long after the last one that people
// would not look at the old one.
func (j *Jira) again(ctx context.Context, r *record, p notice.Proposal) error {
	if p.Finding == nil || r.Over.IsZero() || !p.Resolved.IsZero() || !p.Finding.Pods.Since.After(r.Over) {
		return nil
	}
	since := p.Finding.Pods.Since
	if since.Sub(r.Over) > j.opts.Reopen {
		r.forget()
	} else {
		r.note(line{Key: fmt.Sprint("again-", since.Unix()), At: since, What: "it waits again"})
		r.Over = time.Time{}
	}
	return j.save(ctx, r)
}

// tell brings a ticket to what the proposal says.
func (j *Jira) tell(ctx context.Context, r *record, p notice.Proposal) error {
	if err := j.ticket(ctx, r, p); err != nil || r.ID == "" {
		return err
	}
	for _, step := range []func(context.Context, *record, notice.Proposal) error{j.edit, j.link, j.history, j.close} {
		if err := step(ctx, r, p); err != nil {
			return err
		}
	}
	return nil
}
