package rca

import (
	"context"
	"math"
	"slices"
	"time"

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

// besides are the hits of a search that tell of nothing that stands beside the finding already.
func besides(past []knowledge.Outcome, hits []knowledge.Hit) []knowledge.Hit {
	hits = slices.DeleteFunc(hits, func(h knowledge.Hit) bool {
		return slices.ContainsFunc(past, func(o knowledge.Outcome) bool { return o.Is(h) })
	})
	return hits[:min(maxPast, len(hits))]
}

// setRecords says of each fix how its kind turned out here against the root cause.
func setRecords(past []knowledge.Outcome, d diagnosis.Diagnosis) {
	for n := range d.Fixes {
		d.Fixes[n].Record = record(past, d.Causes, d.Fixes[n].Kind)
	}
}

// record counts the past fixes of a kind for the root cause; nil where there were none.
func record(past []knowledge.Outcome, causes []diagnosis.Cause, kind diagnosis.FixKind) *diagnosis.Record {
	var r diagnosis.Record
	var took []time.Duration
	for _, o := range past {
		if len(causes) == 0 || o.Cause != string(causes[0].ID) || o.Fix != string(kind) {
			continue
		}
		r.Of++
		if o.Runs {
			r.Worked++
			took = append(took, o.Took)
		}
	}
	if r.Of == 0 {
		return nil
	}
	if len(took) > 0 {
		slices.Sort(took)
		r.Minutes = int(math.Ceil(took[len(took)/2].Minutes()))
	}
	return &r
}
