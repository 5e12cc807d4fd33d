package notice

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Notifier tells people about incidents, in one place: a channel, a tracker, a pager.
type Notifier interface {
	// Notify has people see a proposal there as it is now. Posting the same proposal twice
	// must update, never repeat: of one Incident there is one message (ticket, page), that
	// the first call posts and each later one edits, also when the later one comes from
	// another process, or when nobody knows whether the first came through. The same
	// proposal again is no request that changes anything.
	//
	// What the vendor asks for (Retry-After), and what passes by itself, is waited for
	// within the call, for minutes at most. An error that is ErrRefused says that this
	// proposal will not be taken however often it is tried; any other that it has to be tried
	// again, with the newest proposal of that incident, before others that came later. An
	// error is for an operator to read, says where to mend it, and holds no secret. Notify
	// returns when the context ends.
	Notify(context.Context, Proposal) error
}

// ErrRefused is of a proposal that the place does not take as it is. Nothing is wrong
// with the place itself: others go there.
var ErrRefused = errors.New("refused")

// Proposal is all there is to tell people of one incident, from the first finding to its
// end. It is level-triggered: the newest says everything, what came before may be missed.
type Proposal struct {
	Incident string `json:"incident"`
	// Finding is the newest diagnosis, as it was published; nil where none is kept, as of an
	// incident whose plan has outlived it.
	Finding *diagnosis.Summary `json:"finding,omitempty"`
	// Read is when the finding was published.
	Read time.Time `json:"read,omitzero"`
	// Plans are the newest news of each plan for it, by Since.
	Plans []Notice `json:"plans,omitempty"`
	// Alarm is one sentence about what holds up everybody, as that the breaker is open: there
	// is no finding then, Incident is a word for it, and Read since when it is so.
	Alarm string `json:"alarm,omitempty"`
	// Taken is who has said in another place that they see to it; nil: nobody has.
	Taken *Taken `json:"taken,omitempty"`
	// Wording is what a model made of Finding; nil: nothing. It decides nothing, and stands apart
	// from what code says, marked as a model's.
	Wording *diagnosis.Wording `json:"wording,omitempty"`
	// Snoozed is who has said that they need not be told of it for a while; nil: nobody, or that
	// is over.
	Snoozed *Snoozed `json:"snoozed,omitempty"`
	// Resolved is since when nobody of it waits any more; zero while somebody does.
	Resolved time.Time `json:"resolved,omitzero"`
}

// Taken says that somebody sees to an incident. It decides nothing.
type Taken struct {
	By string    `json:"by"` // as the place has their name: a text from outside
	In string    `json:"in"` // the place
	At time.Time `json:"at"`
}

// Snoozed says that an incident's message in Slack is left alone until a time. It decides
// nothing, and other places go on being told.
type Snoozed struct {
	By    string    `json:"by"` // the Kubernetes user
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until"`
}

// Plan is the plan that matters now: the last that has not ended, or else the one that
// ended last; nil where nobody has decided on any.
func (p Proposal) Plan() *Notice {
	var newest *Notice
	for i := range p.Plans {
		n := &p.Plans[i]
		if newest == nil || newest.Ended() && !n.Ended() || newest.Ended() == n.Ended() && !n.Since.Before(newest.Since) {
			newest = n
		}
	}
	return newest
}

// Found is a finding, and when it was published.
type Found struct {
	Finding diagnosis.Summary `json:"finding"`
	Read    time.Time         `json:"read"`
}

// Keep has people go on seeing the finding that the plan was approved for, nil where it is not
// known: a diagnosis of a cluster that the plan is changing names what the plan itself does.
// It stands beside the plan's end, too, until what still waits, or waits again, was diagnosed
// after that.
func (p *Proposal) Keep(approved *Found) {
	n := p.Plan()
	if approved == nil || n == nil {
		return
	}
	switch n.What {
	case Queued, Running, Undoing:
	case Succeeded:
		if d := p.Finding; d != nil && (d.Pods.Since.After(n.Since) || p.Resolved.IsZero() && p.Read.After(n.Since)) {
			return
		}
	default:
		return
	}
	if d := p.Finding; d != nil && slices.ContainsFunc(d.Fixes, func(f diagnosis.FixSummary) bool { return f.Plan == n.Plan }) {
		return
	}
	p.Finding, p.Read = &approved.Finding, approved.Read
}

// Undecided says whether nothing is under way for it, so that people may still choose.
func (p Proposal) Undecided() bool {
	n := p.Plan()
	return p.Resolved.IsZero() && (n == nil || n.What == Pending || n.Ended() && n.What != Succeeded && n.What != Parked)
}
