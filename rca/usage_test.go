package rca

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// lent is a cluster of one node with GPUs, all held, and of pods that wait for one.
func lent(t *testing.T, edit func(*cluster.State), holders ...*corev1.Pod) *cluster.State {
	t.Helper()
	gpus := *resource.NewQuantity(2, resource.DecimalSI)
	have := corev1.ResourceList{view.WholeGPU: gpus, corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourcePods: resource.MustParse("110")}
	st := &cluster.State{Now: rcatest.Noon, Unread: map[string]string{}, Geometries: map[string]*nodeprobe.NodeGeometry{"gpu-1": {Report: nodeprobe.Report{ObservedAt: metav1.NewTime(rcatest.Noon), Source: nodeprobe.SourceNVML}}},
		Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", UID: "n"}, Status: corev1.NodeStatus{Allocatable: have, Capacity: have}}}}
	for _, name := range []string{"waits-1", "waits-2"} {
		p := rcatest.Victim(name, 100, 1, 0, name)
		p.Spec.NodeName = ""
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
		st.Pods = append(st.Pods, p)
	}
	st.Pods = append(st.Pods, holders...)
	for _, p := range st.Pods {
		p.UID = types.UID("u-" + p.Name)
	}
	if edit != nil {
		edit(st)
	}
	return st
}

// says is a Measure with these answers.
func says(uses map[string]diagnosis.Use) diagnosis.Measure {
	return func(context.Context, time.Time, []diagnosis.Holder) (map[diagnosis.PodName]diagnosis.Use, error) {
		out := map[diagnosis.PodName]diagnosis.Use{}
		for name, u := range uses {
			out[diagnosis.PodName{Namespace: "a", Name: name}] = u
		}
		return out, nil
	}
}

// idleSince is what was seen of an idle pod.
func idleSince(ago time.Duration) diagnosis.Use {
	return diagnosis.Use{Idle: true, Watched: 30 * time.Minute, Max: 0.4, Since: rcatest.Noon.Add(-ago)}
}

func explain(t *testing.T, st *cluster.State, m diagnosis.Measure) diagnosis.Diagnosis {
	t.Helper()
	found, err := Diagnose(t.Context(), st, Options{Measure: m})
	if err != nil || len(found) == 0 {
		t.Fatal(len(found), err)
	}
	return found[0]
}

func causeIDs(d diagnosis.Diagnosis) []diagnosis.CauseID {
	var out []diagnosis.CauseID
	for _, c := range d.Causes {
		out = append(out, c.ID)
	}
	return out
}

// offers are the fixes as kind and victims.
func offers(d diagnosis.Diagnosis) []string {
	var out []string
	for _, f := range d.Fixes {
		text := string(f.Kind)
		for _, v := range f.Cost.Evictions {
			text += " " + v.Name
		}
		out = append(out, text)
	}
	return out
}

func TestIdleHolders(t *testing.T) {
	gang := func(p *corev1.Pod) *corev1.Pod {
		p.Labels["scheduling.x-k8s.io/pod-group"] = "gang"
		return p
	}
	working := diagnosis.Use{Watched: 30 * time.Minute, Max: 90}
	unknown := diagnosis.Use{Unknown: "runs for 10 min"}
	for name, k := range map[string]struct {
		holders []*corev1.Pod
		uses    map[string]diagnosis.Use
		edit    func(*cluster.State)
		causes  []diagnosis.CauseID
		fixes   []string
		unread  []string
	}{
		"idle though dearer": {[]*corev1.Pod{rcatest.Victim("idle", 50, 1, 90*time.Hour, "x"), rcatest.Victim("busy", 0, 1, time.Hour, "y")},
			map[string]diagnosis.Use{"idle": idleSince(time.Hour), "busy": working}, nil,
			[]diagnosis.CauseID{diagnosis.IdleGPUHolders}, []string{"ReleaseIdleHolder idle", "EvictPods busy"}, nil},
		"idle and the cheapest": {[]*corev1.Pod{rcatest.Victim("idle", 0, 1, time.Hour, "x"), rcatest.Victim("busy", 0, 1, 2*time.Hour, "y")},
			map[string]diagnosis.Use{"idle": idleSince(time.Hour), "busy": working}, nil,
			[]diagnosis.CauseID{diagnosis.IdleGPUHolders}, []string{"ReleaseIdleHolder idle"}, nil},
		"all work": {[]*corev1.Pod{rcatest.Victim("b-1", 0, 1, time.Hour, "x"), rcatest.Victim("b-2", 0, 1, 2*time.Hour, "y")},
			map[string]diagnosis.Use{"b-1": working, "b-2": working}, nil,
			[]diagnosis.CauseID{diagnosis.GPUsInUse}, []string{"EvictPods b-1", "Wait"}, nil},
		"one is not known": {[]*corev1.Pod{rcatest.Victim("young", 0, 1, time.Minute, "x"), rcatest.Victim("busy", 0, 1, 2*time.Hour, "y")},
			map[string]diagnosis.Use{"young": unknown, "busy": working}, nil,
			[]diagnosis.CauseID{diagnosis.GPUsInUse}, []string{"EvictPods young", "Wait"}, []string{"GPU work of a/young: runs for 10 min; not taken for idle"}},
		"two are not known": {[]*corev1.Pod{rcatest.Victim("y-1", 0, 1, time.Minute, "x"), rcatest.Victim("y-2", 0, 1, 2*time.Hour, "y")},
			map[string]diagnosis.Use{"y-1": unknown, "y-2": unknown}, nil,
			[]diagnosis.CauseID{diagnosis.GPUsInUse}, []string{"EvictPods y-1", "Wait"}, []string{"GPU work of 2 pods (a/y-1: runs for 10 min, …); not taken for idle"}},
		"idle, of a higher priority": {[]*corev1.Pod{rcatest.Victim("idle", 200, 1, time.Hour, "x"), rcatest.Victim("busy", 0, 1, 2*time.Hour, "y")},
			map[string]diagnosis.Use{"idle": idleSince(time.Hour), "busy": working}, nil,
			[]diagnosis.CauseID{diagnosis.IdleGPUHolders}, []string{"EvictPods busy"}, nil},
		"idle, under a budget": {[]*corev1.Pod{rcatest.Victim("idle", 0, 1, time.Hour, "x"), rcatest.Victim("busy", 0, 1, 2*time.Hour, "y")},
			map[string]diagnosis.Use{"idle": idleSince(time.Hour), "busy": working},
			func(st *cluster.State) { st.PDBs = []*policyv1.PodDisruptionBudget{rcatest.BudgetFor("x", 0)} },
			[]diagnosis.CauseID{diagnosis.IdleGPUHolders}, []string{"EvictPods busy"}, nil},
		"one of a gang works": {[]*corev1.Pod{gang(rcatest.Victim("g-1", 0, 1, time.Hour, "x")), gang(rcatest.Victim("g-2", 0, 1, time.Hour, "x"))},
			map[string]diagnosis.Use{"g-1": idleSince(time.Hour), "g-2": working}, nil,
			[]diagnosis.CauseID{diagnosis.GPUsInUse}, []string{"EvictPods g-1 g-2", "Wait"}, nil},
		"idle is not enough": {[]*corev1.Pod{rcatest.Victim("idle", 0, 1, time.Hour, "x"), rcatest.Victim("busy", 0, 1, 2*time.Hour, "y")},
			map[string]diagnosis.Use{"idle": idleSince(time.Hour), "busy": working},
			func(st *cluster.State) {
				for _, p := range st.Pods[:2] {
					p.Spec.Containers[0].Resources.Requests[view.WholeGPU] = resource.MustParse("2")
				}
			},
			[]diagnosis.CauseID{diagnosis.GPUsInUse}, []string{"EvictPods idle busy", "Wait"}, nil},
		"a pod that never preempts": {[]*corev1.Pod{rcatest.Victim("idle", 0, 1, time.Hour, "x"), rcatest.Victim("busy", 0, 1, 2*time.Hour, "y")},
			map[string]diagnosis.Use{"idle": idleSince(time.Hour), "busy": working},
			func(st *cluster.State) {
				never := corev1.PreemptNever
				st.Pods[0].Spec.PreemptionPolicy, st.Pods[1].Spec.PreemptionPolicy = &never, &never
			},
			[]diagnosis.CauseID{diagnosis.IdleGPUHolders}, []string{"ReleaseIdleHolder idle"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := explain(t, lent(t, k.edit, k.holders...), says(k.uses))
			if !slices.Equal(causeIDs(d), k.causes) {
				t.Errorf("causes %v, want %v", causeIDs(d), k.causes)
			}
			if got := offers(d); !slices.Equal(got, k.fixes) {
				t.Errorf("fixes %q, want %q", got, k.fixes)
			}
			if !slices.Equal(d.Unread, append([]string{}, k.unread...)) {
				t.Errorf("unread %q, want %q", d.Unread, k.unread)
			}
		})
	}
}

// What the release says and what its plan is made of.
func TestReleaseIdleHolder(t *testing.T) {
	holders := []*corev1.Pod{rcatest.Victim("idle", 0, 1, 9*time.Hour, "x"), rcatest.Victim("busy", 0, 1, 2*time.Hour, "y")}
	d := explain(t, lent(t, nil, holders...), says(map[string]diagnosis.Use{"idle": idleSince(3 * time.Hour)}))
	cause := d.Causes[0]
	want := diagnosis.Cause{ID: diagnosis.IdleGPUHolders, Certainty: diagnosis.Likely, Says: "GPUs are held by pods that did no GPU work for 30 min", Nodes: []string{"gpu-1"}, Evidence: []diagnosis.Evidence{
		{Ref: "Node/gpu-1", Fact: "allocatable nvidia.com/gpu=2, requested 2", Claims: []diagnosis.Claim{
			{Ref: "Node/gpu-1", Path: "status.allocatable[nvidia.com/gpu]", Op: "=", Value: "2"}, {Ref: "Node/gpu-1", Path: "requests[nvidia.com/gpu]", Op: "=", Value: "2"}}},
		{Ref: "Pod/a/idle", Fact: "holds 1 of nvidia.com/gpu; no GPU work seen since 2026-11-20 09:00 UTC, at most 0.4 % in the last 30 min (Prometheus)", Claims: []diagnosis.Claim{
			{Ref: "Pod/a/idle", Path: "requests[nvidia.com/gpu]", Op: "=", Value: "1"}, {Ref: "Pod/a/idle", Path: "spec.nodeName", Op: "=", Value: "gpu-1"}}}}}
	if diff := cmp.Diff(want, cause, cmpopts.IgnoreUnexported(diagnosis.Cause{})); diff != "" {
		t.Error(diff)
	}
	f := d.Fixes[0]
	if f.Title != "ask its owner, then evict idle a/idle from gpu-1" || !f.Automatic || f.Proof.Verdict != diagnosis.Schedules || f.Proof.Victims != "wait" || f.Risk != "medium" {
		t.Errorf("%+v", f)
	}
	if diff := cmp.Diff([]string{"ask the owner of a/idle (replicaset/x) yourself (no message is sent): no GPU work seen since 2026-11-20 09:00 UTC", "evict a/idle"}, f.Steps); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]diagnosis.Action{{Verb: diagnosis.VerbEvict, Target: view.PodTarget(holders[0]), Relies: map[string]string{"node": "gpu-1", "idle": "30m0s"}}}, f.Actions); diff != "" {
		t.Error(diff)
	}
	later := explain(t, lent(t, nil, holders...), says(map[string]diagnosis.Use{"idle": idleSince(4 * time.Hour)}))
	if later.Fixes[0].Plan != f.Plan {
		t.Error("that time goes on makes another plan")
	}
}

// Where held GPUs are in the way, and only there, somebody is asked, once for all
// that wait; that nobody could be is said.
func TestWhoIsAsked(t *testing.T) {
	holders := []*corev1.Pod{rcatest.Victim("h", 0, 2, time.Hour, "x")}
	var asked [][]diagnosis.Holder
	count := func(err error) diagnosis.Measure {
		asked = nil
		return func(_ context.Context, at time.Time, h []diagnosis.Holder) (map[diagnosis.PodName]diagnosis.Use, error) {
			if !at.Equal(rcatest.Noon) {
				t.Errorf("asked about %s", at)
			}
			asked = append(asked, h)
			return nil, err
		}
	}
	found, err := Diagnose(t.Context(), lent(t, nil, holders...), Options{Measure: count(errors.New("ask Prometheus p: server error: 503"))})
	if err != nil || len(found) != 2 {
		t.Fatal(len(found), err)
	}
	if diff := cmp.Diff([][]diagnosis.Holder{{{PodName: diagnosis.PodName{Namespace: "a", Name: "h"}, Devices: 2, Running: rcatest.Noon.Add(-time.Hour)}}}, asked); diff != "" {
		t.Error(diff)
	}
	for _, d := range found {
		if causeIDs(d)[0] != diagnosis.GPUsInUse || !slices.Equal(d.Unread, []string{"GPU work: ask Prometheus p: server error: 503; idle holders are not told apart"}) {
			t.Errorf("%v, unread %q", causeIDs(d), d.Unread)
		}
	}
	if d := explain(t, lent(t, nil, holders...), nil); !slices.Equal(d.Unread, []string{"GPU work: no Prometheus is configured; idle holders are not told apart"}) {
		t.Errorf("unread %q", d.Unread)
	}
	for name, edit := range map[string]func(*cluster.State){
		"a taint": func(st *cluster.State) {
			st.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
			st.Pods = st.Pods[:2]
		},
		"too much CPU": func(st *cluster.State) {
			for _, p := range st.Pods[:2] {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("65")}
			}
		},
		"more than there is": func(st *cluster.State) {
			for _, p := range st.Pods[:2] {
				p.Spec.Containers[0].Resources.Requests[view.WholeGPU] = resource.MustParse("3")
			}
		},
		"not advertised": func(st *cluster.State) {
			for _, p := range st.Pods[:2] {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/mig-2g.10gb": resource.MustParse("1")}
			}
		},
	} {
		for _, m := range []diagnosis.Measure{nil, count(nil)} {
			d := explain(t, lent(t, edit, holders...), m)
			if len(asked) != 0 || strings.Contains(strings.Join(d.Unread, ""), "GPU work") {
				t.Errorf("%s: asked %v, unread %q", name, asked, d.Unread)
			}
		}
	}
}
