package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Lifetime of a plan: nothing may be begun later than this after it was recorded.
const Lifetime = 15 * time.Minute

// MostWaiting bounds the pods that a plan names.
const MostWaiting = 100

// Found is a fix as it is now, and the state it was proved on.
type Found struct {
	State     *cluster.State
	Diagnosis diagnosis.Diagnosis
	Fix       diagnosis.Fix
}

// Propose makes the Remediation of a fix that was just found.
func Propose(found Found, requester string, now time.Time) *v1alpha1.Remediation {
	st, d, f := found.State, found.Diagnosis, found.Fix
	rem := &v1alpha1.Remediation{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation"},
		ObjectMeta: metav1.ObjectMeta{Name: f.Plan},
		Spec: v1alpha1.RemediationSpec{Schema: v1alpha1.Schema, Incident: d.Incident, Since: metav1.NewTime(d.Pods.Since), Workload: d.Workload, Headline: d.Headline, Cause: d.Causes[0].ID,
			Fix: f.ID, Kind: f.Kind, Kinds: f.Kinds, Title: f.Title, Nodes: f.Cost.Nodes, Node: f.Proof.Node, Requester: requester,
			Expires: metav1.NewTime(now.Add(Lifetime)), Actions: f.Actions},
	}
	for _, name := range d.Pods.Names {
		p := st.Pod(d.Workload.Namespace, name)
		if p == nil {
			continue
		}
		if len(rem.Spec.Waiting) < MostWaiting {
			rem.Spec.Waiting = append(rem.Spec.Waiting, v1alpha1.Pod{Name: name, UID: p.UID, Node: f.Proof.Places[name]})
		}
		if p.Spec.Priority != nil {
			rem.Spec.Priority = *p.Spec.Priority
		}
	}
	for _, v := range slices.Concat(f.Cost.Evictions, f.Cost.Restarts) {
		if p := st.Pod(v.Namespace, v.Name); p != nil && p.Spec.Priority != nil {
			rem.Spec.VictimPriority = max(rem.Spec.VictimPriority, *p.Spec.Priority)
		}
	}
	return rem
}

// Name is what a plan has to be called by what it says.
func Name(spec v1alpha1.RemediationSpec) string {
	return diagnosis.PlanHash(spec.Incident, spec.Since.Time, spec.Actions)
}

// NewApproval is a person's decision on a plan that they have read.
func NewApproval(rem *v1alpha1.Remediation, who string, groups []string, decision v1alpha1.Decision) *v1alpha1.Approval {
	return &v1alpha1.Approval{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Approval"},
		ObjectMeta: metav1.ObjectMeta{Name: rem.Name},
		Spec:       v1alpha1.ApprovalSpec{Plan: rem.Name, Remediation: string(rem.UID), Decision: decision, Approver: who, Groups: groups},
	}
}

// InOrder puts what happens to a node whose GPUs are re-made under that node's
// cordon: pods that must leave it besides would otherwise come back at once, and a
// node that a person closed opens only when all has gone well.
func InOrder(actions []diagnosis.Action) []diagnosis.Action {
	at := slices.IndexFunc(actions, func(a diagnosis.Action) bool { return a.Relayout != nil })
	if at < 0 {
		return actions
	}
	saga := actions[at]
	how := *saga.Relayout
	how.Victims = slices.Clone(how.Victims)
	saga.Relayout = &how
	var before, after []diagnosis.Action
	for i, a := range actions {
		switch {
		case i == at:
		case a.Verb == diagnosis.VerbEvict && a.Relies["node"] == saga.Target.Name:
			how.Victims = append(how.Victims, a.Target)
		case a.Verb == diagnosis.VerbUncordon && a.Target == saga.Target, i > at:
			after = append(after, a)
		default:
			before = append(before, a)
		}
	}
	return append(append(before, saga), after...)
}

// Mends says of a fix that it puts a node right, or out of the way, whether that brings
// the pod to run or not: such a fix may be applied without a proof that it does.
func Mends(kinds []diagnosis.FixKind) bool {
	return len(kinds) == 1 && slices.Contains([]diagnosis.FixKind{diagnosis.QuarantineGPU, diagnosis.RevertMIGConfig}, kinds[0])
}

// SchedulesNobody says of a plan that no pod was proved to run by it, so that none is
// waited for.
func SchedulesNobody(rem *v1alpha1.Remediation) bool {
	return rem.Spec.Node == "" && Mends(rem.Spec.Kinds)
}
