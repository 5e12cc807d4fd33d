package executor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// A notice names the node that is parked, by the step that parks it, in the order in which
// the plan is carried out; else the first that the plan changes.
func TestNoticeNamesTheNodeThatIsParked(t *testing.T) {
	relayout := func(node string) diagnosis.Action {
		return diagnosis.Action{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: node}, Relayout: &diagnosis.Relayout{Config: "all-1g.5gb"}}
	}
	open := diagnosis.Action{Verb: diagnosis.VerbUncordon, Target: diagnosis.Target{Kind: "Node", Name: "gpu-3"}}
	ended := metav1.NewMicroTime(time.Date(2026, 11, 21, 13, 0, 0, 0, time.FixedZone("", 3600)))
	for _, tc := range []struct {
		parking v1alpha1.StepID
		nodes   []string
		node    string
	}{
		{"", []string{"gpu-1", "gpu-2"}, "gpu-1"},
		{"", nil, ""},
		{"undo/0/config", []string{"gpu-1", "gpu-2"}, "gpu-3"},
		{"undo/1/release", []string{"gpu-1", "gpu-2"}, "gpu-2"},
		{"undo/2/config", []string{"gpu-1", "gpu-2"}, "gpu-1"}, // no such action
		{"undo/nomination", []string{"gpu-1", "gpu-2"}, "gpu-1"},
	} {
		rem := &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.RemediationSpec{Incident: "gpu-0123456789", Title: "it", Nodes: tc.nodes, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"},
			Actions: []diagnosis.Action{open, relayout("gpu-2")}},
			Status: v1alpha1.RemediationStatus{Phase: v1alpha1.Parked, Message: "it will not go back", Parking: tc.parking, Ended: &ended, ApprovedBy: []string{"ada"}, AuditHead: "f00d"}}
		want := notice.Notice{What: "parked", Incident: "gpu-0123456789", Plan: "p", Workload: rem.Spec.Workload, Title: "it", Node: tc.node, Reason: "it will not go back",
			Since: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Approvers: []string{"ada"}, AuditHead: "f00d"}
		if diff := cmp.Diff(want, NoticeOf(rem)); diff != "" {
			t.Errorf("%q: %s", tc.parking, diff)
		}
	}
}

// While a plan runs, the news is the step under way; before that, that it is there.
func TestNoticesOfAPlanUnderWay(t *testing.T) {
	at := func(second int) *metav1.MicroTime {
		m := metav1.NewMicroTime(time.Date(2026, 11, 21, 12, 0, second, 0, time.UTC))
		return &m
	}
	rem := &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: metav1.NewTime(at(1).Time)}, Spec: v1alpha1.RemediationSpec{Incident: "gpu-0123456789", Title: "it"}}
	want := notice.Notice{What: notice.Pending, Incident: "gpu-0123456789", Plan: "p", Title: "it", Since: at(1).UTC()}
	if diff := cmp.Diff(want, NoticeOf(rem)); diff != "" {
		t.Errorf("recorded: %s", diff)
	}
	rem.Status = v1alpha1.RemediationStatus{Phase: v1alpha1.Running, Progress: "2/9", Message: "evicts", Began: at(2), ApprovedBy: []string{"ada"},
		Journal: []v1alpha1.Entry{{Step: "0/cordon", Text: "cordon gpu-1", Began: *at(3)}, {Step: "0/evict/ml/web-1", Text: "evict ml/web-1", Began: *at(4)}}}
	want = notice.Notice{What: notice.Running, Incident: "gpu-0123456789", Plan: "p", Title: "it", Reason: "evicts", Since: at(4).UTC(), Began: at(2).UTC(), Progress: "2/9", Step: "evict ml/web-1", Approvers: []string{"ada"}}
	if diff := cmp.Diff(want, NoticeOf(rem)); diff != "" {
		t.Errorf("runs: %s", diff)
	}
	rem.Status.Phase, rem.Status.Ended = v1alpha1.Succeeded, at(5)
	want.What, want.Since, want.Progress, want.Step = notice.Succeeded, at(5).UTC(), "", ""
	if diff := cmp.Diff(want, NoticeOf(rem)); diff != "" {
		t.Errorf("runs no more: %s", diff)
	}
}
