package whatif

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

const mig = "nvidia.com/mig-2g.10gb"

func node(name string, cpu, slices int64) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"), mig: *resource.NewQuantity(slices, resource.DecimalSI)}
	return n
}

// pod asks by limits alone for cpu and MIG instances.
func pod(name string, cpu, slices int64) *corev1.Pod {
	limits := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}
	if slices > 0 {
		limits[mig] = *resource.NewQuantity(slices, resource.DecimalSI)
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: limits}}}}}
}

func on(p *corev1.Pod, node string) *corev1.Pod {
	p.Spec.NodeName = node
	return p
}

// reporter is what testing.TB and rapid.T have in common.
type reporter interface {
	Helper()
	Fatal(...any)
}

func snapshot(t testing.TB, objs Objects) *Snapshot {
	t.Helper()
	s, err := New(t.Context(), objs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func explain(t reporter, s *Snapshot, p *corev1.Pod) Verdict {
	t.Helper()
	v, err := s.Explain(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestExplainNamesEveryNodeAndBlocker(t *testing.T) {
	tainted := node("a-tainted-and-small", 2, 1)
	tainted.Spec.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	cordoned := node("b-cordoned", 8, 1)
	cordoned.Spec.Unschedulable = true
	elsewhere := node("c-wrong-zone", 8, 1)
	elsewhere.Labels["zone"] = "west"
	beside := node("d-beside", 8, 2)
	beside.Labels["zone"] = "east"
	free := node("f-free", 8, 1)
	for _, n := range []*corev1.Node{tainted, cordoned, free} {
		n.Labels["zone"] = "east"
	}
	p := pod("train", 4, 1)
	p.Labels = map[string]string{"app": "train"}
	p.Spec.NodeSelector = map[string]string{"zone": "east"}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: corev1.LabelHostname}}}}
	other := on(pod("other", 1, 1), "d-beside")
	other.Labels = p.Labels
	full := node("e-full", 8, 1)
	full.Labels["zone"] = "east"
	s := snapshot(t, Objects{Nodes: []*corev1.Node{free, full, beside, elsewhere, cordoned, tainted}, Pods: []*corev1.Pod{other, on(pod("holder", 1, 1), "e-full")}})
	want := Verdict{[]NodeVerdict{
		{"a-tainted-and-small", []Blocker{
			{"TaintToleration", "node(s) had untolerated taint(s)", true},
			{"NodeResourcesFit", "Insufficient cpu", true}}},
		{"b-cordoned", []Blocker{{"NodeUnschedulable", "node(s) were unschedulable", true}}},
		{"c-wrong-zone", []Blocker{{"NodeAffinity", "node(s) didn't match Pod's node affinity/selector", true}}},
		{"d-beside", []Blocker{{"InterPodAffinity", "node(s) didn't match pod anti-affinity rules", false}}},
		{"e-full", []Blocker{{"NodeResourcesFit", "Insufficient " + mig, false}}},
		{"f-free", nil},
	}}
	got := explain(t, s, p)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if !slices.Equal(got.Feasible(), []string{"f-free"}) {
		t.Errorf("feasible %v", got.Feasible())
	}
	if fits, err := s.Fits(t.Context(), p); err != nil || !slices.Equal(fits, got.Feasible()) {
		t.Errorf("fits %v, %v", fits, err)
	}
}

// Extended resources are named in one order, whatever that of the plugin's map.
func TestExplainNamesExtendedResourcesInOrder(t *testing.T) {
	p := pod("train", 4, 0)
	want := []Blocker{{"NodeResourcesFit", "Insufficient cpu", true}}
	for i := range 8 {
		name := fmt.Sprintf("example.com/device-%d", i)
		p.Spec.Containers[0].Resources.Limits[corev1.ResourceName(name)] = resource.MustParse("1")
		want = append(want, Blocker{"NodeResourcesFit", "Insufficient " + name, true})
	}
	got := explain(t, snapshot(t, Objects{Nodes: []*corev1.Node{node("small", 2, 0)}}), p)
	if len(got.Nodes) != 1 || !slices.Equal(got.Nodes[0].Blockers, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// An ended context is an error, never an answer.
func TestAnEndedContextGivesNoAnswer(t *testing.T) {
	s := snapshot(t, Objects{Nodes: []*corev1.Node{node("a", 8, 1)}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Explain(ctx, pod("p", 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("explain: %v", err)
	}
	if _, err := s.Fits(ctx, pod("p", 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("fits: %v", err)
	}
}

func TestPlaceTakesUpRoom(t *testing.T) {
	s := snapshot(t, Objects{Nodes: []*corev1.Node{node("b", 8, 1), node("a", 8, 1)}})
	for i, want := range []string{"a", "b", ""} {
		if got, err := s.Place(t.Context(), pod(fmt.Sprint("p", i), 1, 1)); err != nil || got != want {
			t.Errorf("pod %d: %q, %v, want %q", i, got, err, want)
		}
	}
}

func TestTryTakesEverythingBack(t *testing.T) {
	s := snapshot(t, Objects{Nodes: []*corev1.Node{node("a", 8, 1), node("b", 8, 0)}, Pods: []*corev1.Pod{on(pod("holder", 1, 1), "a")}})
	p := pod("train", 1, 1)
	before := explain(t, s, p)
	if len(before.Feasible()) != 0 {
		t.Fatalf("feasible before: %v", before.Feasible())
	}
	unchanged := func(when string) {
		t.Helper()
		if after := explain(t, s, p); !reflect.DeepEqual(after, before) {
			t.Errorf("after %s:\n%+v\nbefore:\n%+v", when, after, before)
		}
		if len(s.undo) != 0 || s.depth != 0 || len(s.pods) != 1 || len(s.nodes) != 2 {
			t.Errorf("after %s: %d changes to take back, depth %d, %d pods, %d nodes", when, len(s.undo), s.depth, len(s.pods), len(s.nodes))
		}
	}
	disturb := func(s *Snapshot) {
		s.DeletePod("ml", "holder")
		s.SetNode(node("b", 8, 4))
		s.SetNode(node("c", 8, 1))
		s.SetPod(on(pod("holder", 2, 1), "b"))
		s.SetPod(on(pod("new", 1, 1), "c"))
		s.DeleteNode("a")
		s.DeleteNode("c")
	}
	want := []string{"b"}
	if err := Try(s, func(s *Snapshot) error {
		disturb(s)
		if got := explain(t, s, p).Feasible(); !slices.Equal(got, want) {
			t.Errorf("inside: %v, want %v", got, want)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	unchanged("a try")
	failure := errors.New("no")
	if err := Try(s, func(s *Snapshot) error { disturb(s); return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	unchanged("an error")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = Try(s, func(s *Snapshot) error { disturb(s); panic("stop") })
	}()
	unchanged("a panic")
	if err := Try(s, func(s *Snapshot) error {
		s.SetNode(node("b", 8, 1))
		outer := explain(t, s, p)
		err := Try(s, func(s *Snapshot) error { disturb(s); return nil })
		if inner := explain(t, s, p); !reflect.DeepEqual(inner, outer) {
			t.Errorf("the inner try leaked: %+v, want %+v", inner, outer)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	unchanged("nested tries")
}

// Whatever changes are made one by one, the snapshot answers as one made of the
// outcome; and taking them back gives the first answer again.
func TestChangesEqualAFreshSnapshot(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		nodes, pods := map[string]*corev1.Node{}, map[string]*corev1.Pod{}
		for i := range 4 {
			nodes[fmt.Sprint("n", i)] = node(fmt.Sprint("n", i), 4, 2)
		}
		s, err := New(t.Context(), objectsOf(nodes, pods))
		if err != nil {
			r.Fatal(err)
		}
		defer s.Close()
		asked := pod("asked", 2, 1)
		before := explain(r, s, asked)
		err = Try(s, func(s *Snapshot) error {
			for range rapid.IntRange(1, 12).Draw(r, "changes") {
				change(r, s, nodes, pods)
			}
			fresh, err := New(t.Context(), objectsOf(nodes, pods))
			if err != nil {
				return err
			}
			defer fresh.Close()
			if got, want := explain(r, s, asked), explain(r, fresh, asked); !reflect.DeepEqual(got, want) {
				r.Fatalf("got\n%+v\nwant\n%+v", got, want)
			}
			return nil
		})
		if err != nil {
			r.Fatal(err)
		}
		if after := explain(r, s, asked); !reflect.DeepEqual(after, before) {
			r.Fatalf("taken back:\n%+v\nbefore:\n%+v", after, before)
		}
	})
}

// change does one thing to the snapshot and to the objects beside it.
func change(r *rapid.T, s *Snapshot, nodes map[string]*corev1.Node, pods map[string]*corev1.Pod) {
	name := fmt.Sprint("n", rapid.IntRange(0, 5).Draw(r, "node"))
	podName := fmt.Sprint("p", rapid.IntRange(0, 5).Draw(r, "pod"))
	switch rapid.SampledFrom([]string{"node", "pod", "pod", "pod", "delete", "end"}).Draw(r, "what") {
	case "node":
		n := node(name, rapid.Int64Range(0, 8).Draw(r, "cpu"), rapid.Int64Range(0, 3).Draw(r, "slices"))
		n.Spec.Unschedulable = rapid.Bool().Draw(r, "cordoned")
		nodes[name] = n
		s.SetNode(n)
	case "pod":
		if nodes[name] == nil {
			return
		}
		p := on(pod(podName, rapid.Int64Range(1, 3).Draw(r, "cpu"), rapid.Int64Range(0, 2).Draw(r, "slices")), name)
		pods[podName] = p
		s.SetPod(p)
	case "delete":
		delete(pods, podName)
		s.DeletePod("ml", podName)
	case "end":
		if pods[podName] == nil {
			return
		}
		p := pods[podName].DeepCopy()
		p.Status.Phase = corev1.PodSucceeded
		pods[podName] = p
		s.SetPod(p)
	}
}

func objectsOf(nodes map[string]*corev1.Node, pods map[string]*corev1.Pod) Objects {
	var o Objects
	for _, n := range nodes {
		o.Nodes = append(o.Nodes, n)
	}
	for _, p := range pods {
		o.Pods = append(o.Pods, p)
	}
	return o
}
