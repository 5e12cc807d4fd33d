package decisions

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// PlanStanding is where a plan stands, and by whose word.
type PlanStanding struct {
	Plan     string         `json:"plan"`
	Fix      int            `json:"fix"`
	Phase    v1alpha1.Phase `json:"phase"`
	State    string         `json:"state"` // for a person
	Progress string         `json:"progress,omitempty"`
	By       []string       `json:"by"` // who approved it, or who asked for it
	Message  string         `json:"message,omitempty"`
	// AuditHead is the hash of the last line of the audit trail about it.
	AuditHead string `json:"auditHead,omitempty"`
}

// StandingOf is where a plan stands.
func StandingOf(rem *v1alpha1.Remediation) *PlanStanding {
	s := &PlanStanding{Plan: rem.Name, Fix: rem.Spec.Fix, Phase: cmp.Or(rem.Status.Phase, v1alpha1.Pending), Progress: rem.Status.Progress, By: rem.Status.ApprovedBy, Message: rem.Status.Message, AuditHead: rem.Status.AuditHead}
	if len(s.By) == 0 {
		s.By = []string{rem.Spec.Requester}
	}
	switch s.State = strings.ToLower(string(s.Phase)); s.Phase {
	case v1alpha1.Pending:
		s.State = "recorded"
	case v1alpha1.Queued:
		s.State = "approved"
	case v1alpha1.Running:
		s.State = "step " + cmp.Or(s.Progress, "0")
	case v1alpha1.Undoing:
		s.State = "being taken back"
	case v1alpha1.Succeeded:
		s.State = "done"
	}
	return s
}

// String tells a person.
func (s *PlanStanding) String() string {
	return fmt.Sprintf("#%d %s (%s)", s.Fix, s.State, strings.Join(s.By, ", "))
}

// Telling are, by incident, the plans that tell most of it: one under way before one that
// waits, that before one that is parked; else the newest.
func Telling(plans []v1alpha1.Remediation) map[string]*v1alpha1.Remediation {
	rank := func(p v1alpha1.Phase) int {
		switch {
		case p.Begun():
			return 0
		case !p.Ended():
			return 1
		case p == v1alpha1.Parked:
			return 2
		}
		return 3
	}
	out := map[string]*v1alpha1.Remediation{}
	for i := range plans {
		p := &plans[i]
		best := out[p.Spec.Incident]
		if best == nil || cmp.Or(cmp.Compare(rank(p.Status.Phase), rank(best.Status.Phase)), best.CreationTimestamp.Compare(p.CreationTimestamp.Time), cmp.Compare(p.Name, best.Name)) < 0 {
			out[p.Spec.Incident] = p
		}
	}
	return out
}
