package executor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A node is an orphan when nobody is in charge of the plan of its mark: it has ended, no
// executor leads, or its terminal was not heard of for a while; and so is such a plan itself.
func TestOrphans(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(now.Add(-d))) }
	marked := func(name string, op diagnosis.Operation) *corev1.Node {
		text, err := op.Annotation()
		if err != nil {
			t.Fatal(err)
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{diagnosis.OperationAnnotation: text}}}
		n.Spec.Unschedulable = true
		return n
	}
	under := func(uid string, phase v1alpha1.Phase, by v1alpha1.Carrier, renewed *metav1.MicroTime) v1alpha1.Remediation {
		r := v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: "plan-" + uid, UID: types.UID(uid)}}
		r.Spec.Carrier, r.Spec.Requester, r.Status.Phase, r.Status.Renewed = by, "ada", phase, renewed
		return r
	}
	mark := func(uid string) diagnosis.Operation {
		return diagnosis.Operation{Plan: "plan-" + uid, ID: types.UID(uid)}
	}
	parked, foreign := mark("parked"), marked("foreign", mark("x"))
	parked.Parked, foreign.Annotations[diagnosis.OperationAnnotation] = "it failed", "x"
	nodes := []*corev1.Node{marked("gone", mark("gone")), marked("ended", mark("ended")), marked("led", mark("led")), marked("alive", mark("alive")), marked("quiet", mark("quiet")), marked("parked", parked), foreign, {}}
	plans := []v1alpha1.Remediation{under("ended", v1alpha1.Failed, "", nil), under("led", v1alpha1.Running, "", nil), under("alive", v1alpha1.Running, v1alpha1.Terminal, ago(quiet-1)),
		under("quiet", v1alpha1.Undoing, v1alpha1.Terminal, ago(quiet)), under("nodeless", v1alpha1.Running, v1alpha1.Terminal, ago(time.Hour)), under("new", "", v1alpha1.Terminal, nil)}
	const over, silent = "its plan is not under way any more", "a terminal of ada has begun it, and was last heard of at "
	want := []Orphan{
		{"gone", "plan-gone", over, "unpend release gone"}, {"ended", "plan-ended", over, "unpend release ended"},
		{"quiet", "plan-quiet", silent + "2026-11-20T11:59:00Z", "unpend release quiet"},
		{"foreign", "", `node foreign: annotation unpend.dev/operation is not one of ours: "x"`, "unpend release foreign"},
		{"", "plan-nodeless", silent + "2026-11-20T11:00:00Z", "unpend release plan-nodeles"},
	}
	if diff := cmp.Diff(want, orphans(nodes, plans, true, now)); diff != "" {
		t.Error(diff)
	}
	unled := orphans(nodes[2:3], plans[1:2], false, now)
	if diff := cmp.Diff([]Orphan{{"led", "plan-led", "an executor has begun it, and none leads", "unpend release led"}}, unled); diff != "" {
		t.Error(diff)
	}
}
