package rca

import (
	"context"
	"slices"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/diagnosis"
)

// maxPast bounds the past outcomes that a diagnosis quotes.
const maxPast = 3

// remember reads how past fixes turned out, newest first. That nobody can tell is no
// reason to hold a diagnosis back.
func remember(ctx context.Context, outcomes func(context.Context) ([]knowledge.Outcome, error)) (past []knowledge.Outcome, unread string) {
	if outcomes == nil {
		return nil, ""
	}
	past, err := outcomes(ctx)
	if err != nil {
		return nil, "outcomes: " + err.Error() + "; how past fixes turned out is not known"
	}
	slices.SortStableFunc(past, func(a, b knowledge.Outcome) int { return b.At.Compare(a.At) })
	return past, ""
}

// pastHits are the newest outcomes of fixes for the root cause.
func pastHits(past []knowledge.Outcome, causes []diagnosis.Cause) []knowledge.Hit {
	out := []knowledge.Hit{}
	for _, o := range past {
		if len(causes) > 0 && o.Cause == string(causes[0].ID) && len(out) < maxPast {
			out = append(out, o.Hit())
		}
	}
	return out
}
