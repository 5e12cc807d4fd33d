package paging

import (
	"time"

	"github.com/unpend/unpend/remediate/notice"
)

// When says what is worth a page; the zero value, nothing.
type When struct {
	// Parked is a node that was left cordoned on purpose.
	Parked bool
	// Breaker is that all work is stopped, until a person closes the breaker.
	Breaker bool
	// Waiting is how long somebody waits, whatever the reason; 0: it is worth none.
	Waiting time.Duration
	// Everything is every finding.
	Everything bool
	// MinPriority is the least priority of pods whose waiting, or finding, is worth one; nil:
	// any is. One that nobody can tell may be as high.
	MinPriority *int32
}

// wants says whether there is a reason for a page now, and else from when on there is one by
// itself; the zero time where there is none.
func (w When) wants(p notice.Proposal, now time.Time) (bool, time.Time) {
	if p.Alarm != "" {
		return w.Breaker && p.Resolved.IsZero(), time.Time{}
	}
	if w.Parked && parked(p) != nil {
		return true, now.Add(parkedAgain)
	}
	if p.Finding == nil || !p.Resolved.IsZero() {
		return false, time.Time{}
	}
	if w.MinPriority != nil && !p.Finding.Pods.AtLeast(*w.MinPriority) {
		return false, time.Time{}
	}
	if w.Everything {
		return true, time.Time{}
	}
	if since := p.Finding.Pods.Since; w.Waiting > 0 && !since.IsZero() {
		from := since.Add(w.Waiting)
		return !now.Before(from), from
	}
	return false, time.Time{}
}

// parkedAgain is how often it is looked whether a parked node was given back, of which there
// is no news.
const parkedAgain = 30 * time.Second

// parked is the plan that left a node cordoned which nobody has given back; nil: there is
// none.
func parked(p notice.Proposal) *notice.Notice {
	for i := range p.Plans {
		if n := &p.Plans[i]; n.What == notice.Parked && !n.Released {
			return n
		}
	}
	return nil
}
