package executor

import (
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/plan"
)

// Steps are the texts of all that carrying a fix out takes, in order, as the journal names
// them: of a dry run the same as of a real one. Where d.Locks is set they are those of the
// executor in that namespace.
func Steps(d Deps, found plan.Found) []string {
	d = d.withDefaults()
	rem := plan.Propose(found, d.Requester, d.Now())
	act.Begin(rem, found.State, found.Fix, d.Now())
	steps := act.New(d.acting(), rem).Steps()
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = s.Text
	}
	return out
}
