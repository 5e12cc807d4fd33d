package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// Pods that must leave a node besides those on the GPU leave it under the cordon.
func TestOneCordonForAllEvictions(t *testing.T) {
	evict := diagnosis.Action{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Name: "cpu"}, Relies: map[string]string{"node": "a"}}
	other := diagnosis.Action{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Name: "elsewhere"}, Relies: map[string]string{"node": "b"}}
	saga := diagnosis.Action{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: "a"}, Relayout: &diagnosis.Relayout{Victims: []diagnosis.Target{{Name: "gpu"}}}}
	open := diagnosis.Action{Verb: diagnosis.VerbUncordon, Target: saga.Target}
	got := InOrder([]diagnosis.Action{open, evict, other, saga})
	if len(got) != 3 || got[0].Target.Name != "elsewhere" || len(got[1].Relayout.Victims) != 2 || got[1].Relayout.Victims[1].Name != "cpu" || got[2].Verb != diagnosis.VerbUncordon {
		t.Errorf("%+v", got)
	}
	if len(saga.Relayout.Victims) != 1 {
		t.Error("the plan itself was changed")
	}
}

// What is recorded of a fix names its pods that wait, a hundred of them, and the priorities
// that guard-rails go by.
func TestPropose(t *testing.T) {
	pod := func(name string, priority int32) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name)}, Spec: corev1.PodSpec{Priority: &priority}}
	}
	st := &cluster.State{Pods: []*corev1.Pod{pod("web-1", 7), pod("web-2", 3)}}
	d := diagnosis.Diagnosis{Incident: "gpu-0123456789", Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Headline: "it waits", Causes: []diagnosis.Cause{{ID: diagnosis.GPUsInUse}, {ID: diagnosis.NodeCordoned}}}
	for i := range 101 {
		name := fmt.Sprintf("training-%03d", i)
		d.Pods.Names = append(d.Pods.Names, name)
		st.Pods = append(st.Pods, pod(name, 100))
	}
	d.Pods.Names = append(d.Pods.Names, "gone")
	f := diagnosis.Fix{ID: 2, Plan: hash, Kind: diagnosis.EvictPods, Kinds: []diagnosis.FixKind{diagnosis.EvictPods}, Title: "evict", Proof: diagnosis.Proof{Node: "gpu-1"},
		Cost:    diagnosis.Cost{Nodes: []string{"gpu-1"}, Evictions: []diagnosis.PodName{{Namespace: "ml", Name: "web-1"}, {Namespace: "ml", Name: "web-2"}, {Namespace: "ml", Name: "gone"}}},
		Actions: []diagnosis.Action{{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: "web-1", UID: "uid-web-1"}}}}
	got := Propose(Found{st, d, f}, "ada", noon)
	if n := len(got.Spec.Waiting); n != 100 || got.Spec.Waiting[99] != (v1alpha1.Pod{Name: "training-099", UID: "uid-training-099"}) {
		t.Errorf("%d pods wait, the last is %v", n, got.Spec.Waiting[n-1])
	}
	got.Spec.Waiting = nil
	want := &v1alpha1.Remediation{TypeMeta: metav1.TypeMeta{APIVersion: "unpend.dev/v1alpha1", Kind: "Remediation"}, ObjectMeta: metav1.ObjectMeta{Name: hash}, Spec: v1alpha1.RemediationSpec{Schema: 1,
		Incident: d.Incident, Workload: d.Workload, Headline: "it waits", Cause: diagnosis.GPUsInUse, Fix: 2, Kind: diagnosis.EvictPods, Kinds: f.Kinds, Title: "evict", Nodes: []string{"gpu-1"}, Node: "gpu-1",
		Priority: 100, VictimPriority: 7, Requester: "ada", Expires: metav1.NewTime(noon.Add(15 * time.Minute)), Actions: f.Actions}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Only a plan that mends a node, and nothing else, may be without a pod that runs by it.
func TestSchedulesNobody(t *testing.T) {
	for _, tc := range []struct {
		kinds         []diagnosis.FixKind
		node          string
		mends, nobody bool
	}{
		{[]diagnosis.FixKind{diagnosis.QuarantineGPU}, "", true, true},
		{[]diagnosis.FixKind{diagnosis.RevertMIGConfig}, "", true, true},
		{[]diagnosis.FixKind{diagnosis.RevertMIGConfig}, "gpu-1", true, false},
		{[]diagnosis.FixKind{diagnosis.EvictPods}, "", false, false},
		{[]diagnosis.FixKind{diagnosis.QuarantineGPU, diagnosis.EvictPods}, "", false, false},
		{nil, "", false, false},
	} {
		rem := &v1alpha1.Remediation{Spec: v1alpha1.RemediationSpec{Kinds: tc.kinds, Node: tc.node}}
		if Mends(tc.kinds) != tc.mends || SchedulesNobody(rem) != tc.nobody {
			t.Errorf("%v to %q: mends %v, schedules nobody %v", tc.kinds, tc.node, Mends(tc.kinds), SchedulesNobody(rem))
		}
	}
}
