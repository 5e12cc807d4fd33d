package rca

import (
	"context"
	"slices"

	"github.com/unpend/unpend/knowledge"
)

// maxPast bounds the past outcomes that a diagnosis quotes.
const maxPast = 3

// remember reads how past fixes turned out. That nobody can tell is no reason to hold
// a diagnosis back.
func (c *Case) remember(ctx context.Context, outcomes func(context.Context) ([]knowledge.Outcome, error)) (unread string) {
	if outcomes == nil {
		return ""
	}
	var err error
	if c.past, err = outcomes(ctx); err != nil {
		return "outcomes: " + err.Error() + "; how past fixes turned out is not known"
	}
	slices.SortStableFunc(c.past, func(a, b knowledge.Outcome) int { return b.At.Compare(a.At) })
	return ""
}

// failures is in how many percent of its past uses a kind of fix did not help against
// a cause; 0 when it was never used.
func (c *Case) failures(cause CauseID, kind FixKind) int {
	failed, of := 0, 0
	for _, o := range c.past {
		if o.Cause == string(cause) && o.Fix == string(kind) {
			of++
			if !o.Runs {
				failed++
			}
		}
	}
	return failed * 100 / max(1, of)
}

// pastHits are the newest outcomes of fixes for the root cause.
func (c *Case) pastHits(causes []Cause) []knowledge.Hit {
	out := []knowledge.Hit{}
	for _, o := range c.past {
		if len(causes) > 0 && o.Cause == string(causes[0].ID) && len(out) < maxPast {
			out = append(out, o.Hit())
		}
	}
	return out
}
