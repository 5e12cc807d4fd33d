package desk

import (
	"context"

	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Propose records a plan that was just found, for people to decide on, and decides nothing: one
// that is recorded already is given back as it is. plan.ErrRefused: this person may not, or it
// has been carried out.
func (v Visitor) Propose(ctx context.Context, found plan.Found) (*v1alpha1.Remediation, error) {
	return v.record(ctx, found)
}
