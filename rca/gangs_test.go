package rca

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// flock is two nodes of four GPUs, and a group of the scheduler plugins.
type flock struct{ *cluster.State }

func newFlock(least int64) flock {
	st := &cluster.State{Unread: map[string]string{}}
	for _, name := range []string{"n1", "n2"} {
		gpus := corev1.ResourceList{view.WholeGPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("64")}
		st.Nodes = append(st.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/gpu.present": "true", "kubernetes.io/hostname": name}},
			Status: corev1.NodeStatus{Allocatable: gpus, Capacity: gpus}})
	}
	st.PodGroups.Plugins = []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "ml", "name": "train"}, "spec": map[string]any{"minMember": least}}}}
	return flock{st}
}

// pod asks for GPUs; on a node it runs, without one it waits.
func (f flock) pod(name, node string, gpus int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name), Labels: map[string]string{}}, Spec: corev1.PodSpec{NodeName: node, SchedulerName: corev1.DefaultSchedulerName,
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{view.WholeGPU: resource.MustParse(fmt.Sprint(gpus))}}}}}}
	p.Status.Phase = corev1.PodRunning
	if node == "" {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}}
	}
	f.Pods = append(f.Pods, p)
	return p
}

func (f flock) member(name, node string, gpus int) *corev1.Pod {
	p := f.pod(name, node, gpus)
	p.Labels["scheduling.x-k8s.io/pod-group"] = "train"
	return p
}

func (f flock) diagnose(t *testing.T, pod string) diagnosis.Diagnosis {
	t.Helper()
	all, err := Diagnose(t.Context(), f.State, Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(d diagnosis.Diagnosis) bool { return slices.Contains(d.Pods.Names, pod) })
	if i < 0 {
		t.Fatalf("%s is not told of in %+v", pod, all)
	}
	return all[i]
}

func TestGangs(t *testing.T) {
	cases := map[string]struct {
		least     int64
		fill      func(flock)
		want      diagnosis.CauseID
		says      string
		certainty diagnosis.Certainty
		kind      diagnosis.FixKind
		verdict   diagnosis.Verdict
		victims   string // names, with commas
	}{
		"one member is no gang": {1, func(f flock) { f.member("a", "", 1) }, diagnosis.Unknown, "accept n1", diagnosis.Possible, diagnosis.Manual, diagnosis.Unproven, ""},
		"a complete gang is none that waits": {2, func(f flock) { f.member("b", "n1", 1); f.member("c", "n2", 1); f.member("a", "", 1) },
			diagnosis.Unknown, "accept n1", diagnosis.Possible, diagnosis.Manual, diagnosis.Unproven, ""},
		"a gang that fits waits for something else": {2, func(f flock) { f.member("a", "", 4); f.member("b", "", 4) }, diagnosis.Unknown, "accept n1", diagnosis.Possible, diagnosis.Manual, diagnosis.Unproven, ""},
		"members that have a node count": {3, func(f flock) {
			f.member("b", "n1", 4)
			f.member("a", "", 3)
			f.member("c", "", 3)
			f.pod("other", "n2", 1)
		},
			diagnosis.GangIncomplete, "1 of 3 members of its gang has a node, and 1 more fits", diagnosis.Proven, diagnosis.Wait, diagnosis.Unproven, ""},
		"those of the gang are never evicted for it": {3, func(f flock) { f.member("b", "n1", 1); f.member("a", "", 4); f.member("c", "", 4) },
			diagnosis.GangIncomplete, "1 of 3 members of its gang has a node, and 1 more fits", diagnosis.Proven, diagnosis.Wait, diagnosis.Unproven, ""},
		"the cheapest set over all nodes": {2, func(f flock) {
			f.member("a", "", 3)
			f.member("c", "", 3)
			f.pod("small", "n1", 1)
			f.pod("x", "n2", 1)
			f.pod("y", "n2", 1)
		}, diagnosis.GangIncomplete, "1 of 2", diagnosis.Proven, diagnosis.EvictPods, diagnosis.Schedules, "x"},
		"members that differ": {3, func(f flock) { f.member("a", "", 1); f.member("b", "", 4); f.member("c", "", 2); f.pod("x", "n2", 2) },
			diagnosis.GangIncomplete, "2 of 3", diagnosis.Likely, diagnosis.EvictPods, diagnosis.Schedules, "x"},
		"a budget keeps who would have to leave": {2, func(f flock) {
			f.member("a", "", 4)
			f.member("c", "", 4)
			f.pod("x", "n2", 1).Labels["app"] = "kept"
			f.PDBs = []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "kept"},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kept"}}}}}
		}, diagnosis.GangIncomplete, "1 of 2", diagnosis.Proven, diagnosis.Wait, diagnosis.Unproven, ""},
		"members do not exist": {4, func(f flock) { f.member("a", "", 1); f.member("b", "", 1) }, diagnosis.GangIncomplete, "2 of 4 members of its gang exist", diagnosis.Proven, diagnosis.Wait, diagnosis.Waits, ""},
		"the deleted do not count": {2, func(f flock) {
			f.member("a", "", 1)
			now := metav1.Now()
			f.member("b", "n1", 1).DeletionTimestamp = &now
		}, diagnosis.GangIncomplete, "1 of 2 members of its gang exist", diagnosis.Proven, diagnosis.Wait, diagnosis.Waits, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFlock(tc.least)
			tc.fill(f)
			d := f.diagnose(t, "a")
			fix := d.Fixes[0]
			var victims []string
			for _, v := range fix.Cost.Evictions {
				victims = append(victims, v.Name)
			}
			slices.Sort(victims)
			c := d.Causes[0]
			if c.ID != tc.want || !strings.Contains(c.Says, tc.says) || c.Certainty != tc.certainty || fix.Kind != tc.kind || fix.Proof.Verdict != tc.verdict || strings.Join(victims, ",") != tc.victims {
				t.Errorf("%s (%s) %q; %s %q %s, evicts %v: %s", c.ID, c.Certainty, c.Says, fix.Kind, fix.Title, fix.Proof.Verdict, victims, fix.Proof.Why)
			}
		})
	}
}
