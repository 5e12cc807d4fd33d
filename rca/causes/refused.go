package causes

import (
	"slices"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ofRefusal is the rule of one reason why the API server refuses pods, which is read in a room of
// its own; words are those of a headline, empty for the usual ones.
func ofRefusal(id diagnosis.CauseID, tell func(*admission.Refused) (f *view.Finding, words string)) PodRule {
	return PodRule{ID: id, refusal: true, Tell: func(c *Case) *finding {
		f, words := tell(c.Refused)
		if words != "" {
			c.entitle(id, words)
		}
		return found(f)
	}}
}

// wordless is for what a headline says in the usual words.
func wordless(tell func(*admission.Refused) *view.Finding) func(*admission.Refused) (*view.Finding, string) {
	return func(r *admission.Refused) (*view.Finding, string) { return tell(r), "" }
}

// refusedUnsettled takes the refusals that none of the others explains.
var refusedUnsettled = PodRule{
	ID:      diagnosis.Unknown,
	refusal: true,
	Tell: func(c *Case) *finding {
		if !c.Unborn || c.Suspended() || slices.ContainsFunc(c.Own, func(r PodRule) bool { return !r.Aside && slices.Contains(settled, r.ID) }) {
			return nil
		}
		f, words := c.Refused.Unsettled()
		c.entitle(diagnosis.Unknown, words)
		return found(f)
	},
}

// settled are the causes that explain a refusal.
var settled = []diagnosis.CauseID{diagnosis.QuotaExceeded, diagnosis.QuotaDemandsRequests, diagnosis.LimitRangeViolated, diagnosis.InvalidGPURequest, diagnosis.RuntimeNotConfigured}
