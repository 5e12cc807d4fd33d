package capacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

var capacityNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// fleet is a cluster built by hand, and what is certain of it.
type fleet struct {
	st      *cluster.State
	a100    nodeprobe.Model
	trusted []*nodeprobe.NodeGeometry // of nodes in use with a report to believe
	byName  bool                      // MIG manager has the operator's entries alone
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	m, ok := nodeprobe.ModelOf("NVIDIA A100-SXM4-40GB")
	if !ok {
		t.Fatal("no A100")
	}
	f := &fleet{a100: m, st: &cluster.State{Now: capacityNow, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}}}
	f.writable()
	return f
}

// writable has MIG manager read a ConfigMap that takes entries of our own: then each GPU is
// re-made by itself.
func (f *fleet) writable() {
	f.st.ConfigMaps = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Data: map[string]string{"config.yaml": "version: v1\nmig-configs: {none: []}\n"}}}
	f.st.ClusterPolicies = []*unstructured.Unstructured{{Object: map[string]any{"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": "own"}}}}}}
}

func (f *fleet) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{view.LabelMIGStrategy: "mixed", "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{}, Capacity: corev1.ResourceList{},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	f.st.Nodes = append(f.st.Nodes, n)
	return n
}

func (f *fleet) report(n *corev1.Node, gpus ...nodeprobe.GPU) *nodeprobe.NodeGeometry {
	for i := range gpus {
		gpus[i].Index, gpus[i].UUID, gpus[i].Product, gpus[i].Healthy = i, fmt.Sprint("GPU-", n.Name, i), f.a100.Names[0], true
		gpus[i].MIG, gpus[i].Profiles = &nodeprobe.MIGMode{Current: true, Pending: true}, f.a100.Profiles
		for _, in := range gpus[i].Instances {
			n.Status.Allocatable = more(n.Status.Allocatable, view.MIGPrefix+view.Spelled(in.Profile), 1)
		}
	}
	geo := &nodeprobe.NodeGeometry{ObjectMeta: metav1.ObjectMeta{Name: n.Name},
		Report: nodeprobe.Report{ObservedAt: metav1.NewTime(capacityNow), Source: nodeprobe.SourceNVML, GPUs: gpus}}
	f.st.Geometries[n.Name] = geo
	return geo
}

func more(list corev1.ResourceList, name string, n int64) corev1.ResourceList {
	view.Add(list, corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(n, resource.DecimalSI)})
	return list
}

func (f *fleet) pod(name, node, resourceName string, n int64) *corev1.Pod {
	list := more(corev1.ResourceList{}, resourceName, n)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{}},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: capacityNow.Add(-time.Hour)}}}
	f.st.Pods = append(f.st.Pods, p)
	return p
}

func (f *fleet) instance(profile string, start int, holder string) nodeprobe.Instance {
	p, _ := f.a100.Profile(profile)
	in := nodeprobe.Instance{Profile: p.Name, Start: start, Size: p.MemorySlices}
	if holder != "" {
		in.Holder = &nodeprobe.Holder{Namespace: "a", Pod: holder, Container: "c"}
	}
	return in
}

func capacityOf(t testing.TB, st *cluster.State, name string, n int) diagnosis.CapacityItem {
	t.Helper()
	list, err := Capacity(t.Context(), st, []Ask{{name, n}}, Guest{})
	if err != nil || len(list.Items) != 1 || list.Together != nil {
		t.Fatalf("%v, %v", list, err)
	}
	return list.Items[0]
}

// One GPU that nobody holds, one that a 1g holds at 5, one cordoned: every answer
// of the contract is another one.
func TestCapacityAnswers(t *testing.T) {
	f := newFleet(t)
	f.report(f.node("idle"), nodeprobe.GPU{Instances: []nodeprobe.Instance{f.instance("3g.20gb", 0, "")}})
	f.report(f.node("held"), nodeprobe.GPU{Instances: []nodeprobe.Instance{f.instance("1g.5gb", 5, "x"), f.instance("1g.5gb", 0, "")}})
	f.pod("x", "held", view.MIGPrefix+"1g.5gb", 1)
	gone := f.node("gone")
	gone.Spec.Unschedulable = true
	f.report(gone, nodeprobe.GPU{Instances: []nodeprobe.Instance{f.instance("3g.20gb", 0, "")}})
	f.pod("waiting", "", view.MIGPrefix+"3g.20gb", 1)

	want := diagnosis.CapacityItem{Resource: "nvidia.com/mig-3g.20gb", Asked: 4, Now: 1, Repartition: 2, Hardware: 3,
		Evict: diagnosis.CapacityEvict{Fits: 4, Evictions: []diagnosis.PodName{{Namespace: "a", Name: "x"}}, Nodes: []string{"held", "idle"},
			Proof: diagnosis.CapacityProof{Cost: diagnosis.VictimCost{Number: 1, LostSeconds: 3600}, AtLeast: diagnosis.VictimCost{Number: 1, LostSeconds: 3600}, Exact: true}},
		Ignored: []string{"1 node cordoned (gone)", "pods that already wait for it: 1", "taints, node selectors, CPU and memory are not looked at: ask with --like POD"}}
	if diff := cmp.Diff(want, capacityOf(t, f.st, "nvidia.com/mig-3g.20gb", 4)); diff != "" {
		t.Error(diff)
	}
	want.Asked, want.Evict = 5, diagnosis.CapacityEvict{Fits: 4, Evictions: want.Evict.Evictions, Nodes: want.Evict.Nodes, Proof: want.Evict.Proof}
	if diff := cmp.Diff(want, capacityOf(t, f.st, "nvidia.com/mig-3g.20gb", 5)); diff != "" {
		t.Errorf("one too many: %s", diff)
	}
	want.Asked, want.Evict = 2, diagnosis.CapacityEvict{Fits: 2, Evictions: []diagnosis.PodName{}, Nodes: []string{"idle"}, Proof: diagnosis.CapacityProof{Exact: true}}
	if diff := cmp.Diff(want, capacityOf(t, f.st, "nvidia.com/mig-3g.20gb", 2)); diff != "" {
		t.Errorf("by re-making the idle GPU: %s", diff)
	}
	want.Asked, want.Evict = 1, diagnosis.CapacityEvict{Fits: 1, Evictions: []diagnosis.PodName{}, Nodes: []string{}, Proof: diagnosis.CapacityProof{Exact: true}}
	if diff := cmp.Diff(want, capacityOf(t, f.st, "nvidia.com/mig-3g.20gb", 1)); diff != "" {
		t.Errorf("as it is: %s", diff)
	}
}

// What could not be told is never free, and is named.
func TestCapacityOfTheUnknown(t *testing.T) {
	one := func(f *fleet) (*corev1.Node, *nodeprobe.NodeGeometry) {
		n := f.node("n")
		return n, f.report(n, nodeprobe.GPU{Instances: []nodeprobe.Instance{f.instance("3g.20gb", 0, "")}})
	}
	cases := map[string]struct {
		change  func(*fleet, *corev1.Node, *nodeprobe.NodeGeometry)
		want    [3]int
		ignored string
	}{
		"all is known": {func(*fleet, *corev1.Node, *nodeprobe.NodeGeometry) {}, [3]int{1, 2, 2}, "taints"},
		"stale report": {func(_ *fleet, _ *corev1.Node, g *nodeprobe.NodeGeometry) {
			g.Report.ObservedAt = metav1.NewTime(capacityNow.Add(-6 * time.Minute))
		}, [3]int{}, "1 node left out: its report is 6 min old, so holders are unknown; 1 not requested there are not taken for free (n)"},
		"unknown holder": {func(_ *fleet, _ *corev1.Node, g *nodeprobe.NodeGeometry) {
			g.Report.GPUs[0].Instances[0].Holder = &nodeprobe.Holder{Unknown: true}
		}, [3]int{0, 0, 1}, "taints"},
		"unhealthy": {func(_ *fleet, _ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].Healthy = false },
			[3]int{}, "1 GPU unhealthy (n/GPU 0)"},
		"MIG off": {func(_ *fleet, _ *corev1.Node, g *nodeprobe.NodeGeometry) {
			g.Report.GPUs[0].MIG, g.Report.GPUs[0].Instances = &nodeprobe.MIGMode{}, nil
		}, [3]int{}, "1 GPU with MIG off (n/GPU 0)"},
		"MIG mode about to change": {func(_ *fleet, _ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].MIG.Pending = false },
			[3]int{1, 1, 1}, "1 GPU about to change MIG mode: it is not re-made (n/GPU 0)"},
		"impossible geometry": {func(_ *fleet, _ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].Instances[0].Start = 1 },
			[3]int{}, "1 node left out: GPU 0 (GPU-n0) of n: instance 3g.20gb starts at memory slice 1, the profile starts at [0 4]; 1 not requested there are not taken for free (n)"},
		"does not tell its health": {func(_ *fleet, _ *corev1.Node, g *nodeprobe.NodeGeometry) {
			g.Report.GPUs[0].Healthy, g.Report.GPUs[0].Untold = false, true
		}, [3]int{}, "1 node left out: its report does not say whether GPU 0 is healthy; 1 not requested there are not taken for free (n)"},
		"a report that is none": {func(f *fleet, _ *corev1.Node, _ *nodeprobe.NodeGeometry) {
			delete(f.st.Geometries, "n")
			f.st.Illegible = map[string]string{"n": "cannot restore slice from map"}
		}, [3]int{}, "1 node left out: its NodeGeometry cannot be read: cannot restore slice from map; 1 not requested there are not taken for free (n)"},
		"a probe without a driver": {func(_ *fleet, _ *corev1.Node, g *nodeprobe.NodeGeometry) {
			g.Report.Source, g.Report.GPUs[0].Healthy, g.Report.GPUs[0].Instances = nodeprobe.SourceLabels, false, nil
		}, [3]int{}, "1 node left out: the driver tells its probe nothing of its GPUs; 1 not requested there are not taken for free (n)"},
		"parked": {func(_ *fleet, n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			mark(n, diagnosis.Operation{Plan: "p", ID: "i", Parked: "it failed"})
		}, [3]int{}, "1 node parked by unpend (n)"},
		"quarantined": {func(_ *fleet, n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			mark(n, diagnosis.Operation{Plan: "p", ID: "i", Quarantined: "GPU 0"})
			n.Spec.Unschedulable = true
		}, [3]int{}, "1 node quarantined by unpend (n)"},
		"worked on": {func(_ *fleet, n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			mark(n, diagnosis.Operation{Plan: "0123456789ab", ID: "i"})
		}, [3]int{}, "1 node worked on by plan 01234567 of unpend (n)"},
		"marked by others": {func(_ *fleet, n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.Annotations = map[string]string{diagnosis.OperationAnnotation: "mine"}
		}, [3]int{}, "1 node marked by somebody else: annotation unpend.dev/operation is not one of ours (n)"},
		"drift": {func(_ *fleet, n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.Status.Allocatable = corev1.ResourceList{}
		},
			[3]int{0, 0, 1}, "1 node that offers fewer instances than are reported idle: the others are not counted (n)"},
		"no report": {func(f *fleet, _ *corev1.Node, _ *nodeprobe.NodeGeometry) { delete(f.st.Geometries, "n") },
			[3]int{1, 1, 1}, "1 node whose positions nobody reports: only instances that exist count (n)"},
		"labels alone": {func(_ *fleet, _ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.Source = nodeprobe.SourceLabels },
			[3]int{1, 1, 1}, "1 node whose positions nobody reports: only instances that exist count (n)"},
		"strategy single": {func(_ *fleet, n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[view.LabelMIGStrategy] = "single" },
			[3]int{}, "1 node with strategy single: it offers its instances as nvidia.com/gpu (n)"},
		"not ready": {func(_ *fleet, n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		}, [3]int{}, "1 node not ready (n)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			n, g := one(f)
			c.change(f, n, g)
			got := capacityOf(t, f.st, "nvidia.com/mig-3g.20gb", 2)
			if have := [3]int{got.Now, got.Repartition, got.Hardware}; have != c.want {
				t.Errorf("%v, want %v", have, c.want)
			}
			if !slices.ContainsFunc(got.Ignored, func(s string) bool { return strings.HasPrefix(s, c.ignored) }) {
				t.Errorf("%q is not in %q", c.ignored, got.Ignored)
			}
			if len(got.Evict.Evictions) > 0 || got.Evict.Fits != min(2, got.Repartition) {
				t.Errorf("plan %+v", got.Evict)
			}
		})
	}
}

func mark(n *corev1.Node, o diagnosis.Operation) {
	n.Annotations = map[string]string{diagnosis.OperationAnnotation: string(diagnosis.MustJSON(o))}
}

// Who is on a sick GPU makes no room by leaving, and what is free there is not; that the
// device plugin has not noticed changes nothing about it.
func TestCapacityWithoutSickGPUs(t *testing.T) {
	fleetOf := func(t *testing.T, plugin int64) *fleet {
		f := newFleet(t)
		n := f.node("n")
		geo := f.report(n, nodeprobe.GPU{}, nodeprobe.GPU{}, nodeprobe.GPU{}, nodeprobe.GPU{})
		for i := range geo.Report.GPUs {
			geo.Report.GPUs[i].MIG, geo.Report.GPUs[i].Healthy = nil, i > 1
		}
		more(n.Status.Capacity, view.WholeGPU, 4)
		more(n.Status.Allocatable, view.WholeGPU, plugin)
		f.pod("on-sick", "n", view.WholeGPU, 1).Spec.Priority = new(int32(-5))
		f.pod("on-sound", "n", view.WholeGPU, 1)
		geo.Report.GPUs[1].Holders = []nodeprobe.Holder{{Namespace: "a", Pod: "on-sick", Container: "c"}}
		geo.Report.GPUs[2].Holders = []nodeprobe.Holder{{Namespace: "a", Pod: "on-sound", Container: "c"}}
		return f
	}
	for name, tc := range map[string]struct {
		plugin    int64
		now, fits int
		leave     []diagnosis.PodName
	}{
		"the plugin offers all": {4, 1, 2, []diagnosis.PodName{{Namespace: "a", Name: "on-sound"}}},
		// Which of the two it has noticed nobody knows, so the one left may be the sick one.
		"the plugin offers some": {3, 0, 1, []diagnosis.PodName{{Namespace: "a", Name: "on-sound"}}},
		// The scheduler counts two, both requested: the pod on the sick GPU is in the way by that.
		"the plugin has noticed": {2, 0, 2, []diagnosis.PodName{{Namespace: "a", Name: "on-sick"}, {Namespace: "a", Name: "on-sound"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := capacityOf(t, fleetOf(t, tc.plugin).st, view.WholeGPU, 9)
			if got.Now != tc.now || got.Hardware != tc.now || got.Evict.Fits != tc.fits || !slices.Equal(got.Evict.Evictions, tc.leave) {
				t.Errorf("%+v", got)
			}
			if want := "2 GPUs unhealthy (n/GPU 0, n/GPU 1)"; !slices.Contains(got.Ignored, want) {
				t.Errorf("%q is not in %q", want, got.Ignored)
			}
		})
	}
	t.Run("more is requested than there is", func(t *testing.T) {
		got := capacityOf(t, fleetOf(t, 1).st, view.WholeGPU, 1)
		if got.Now != 0 || got.Evict.Fits != 0 || len(got.Evict.Evictions) != 0 || !slices.Contains(got.Ignored, "1 node whose pods hold more than it has: nobody is counted on to leave it (n)") {
			t.Errorf("%+v", got)
		}
	})
}

func TestCapacityOfWholeGPUs(t *testing.T) {
	f := newFleet(t)
	n := f.node("n")
	geo := f.report(n, nodeprobe.GPU{}, nodeprobe.GPU{}, nodeprobe.GPU{}, nodeprobe.GPU{})
	for i := range geo.Report.GPUs {
		geo.Report.GPUs[i].MIG = nil
	}
	more(n.Status.Allocatable, view.WholeGPU, 4)
	f.pod("pair", "n", view.WholeGPU, 2)
	geo.Report.GPUs[0].Holders = []nodeprobe.Holder{{Namespace: "a", Pod: "pair", Container: "c"}}
	geo.Report.GPUs[1].Holders = geo.Report.GPUs[0].Holders
	geo.Report.GPUs[2].Holders = []nodeprobe.Holder{{Unknown: true}} // the scheduler does not know of it
	counted := f.node("counted")
	more(counted.Status.Allocatable, view.WholeGPU, 2)
	f.pod("one", "counted", view.WholeGPU, 1).Spec.Priority = new(int32(-5))

	got := capacityOf(t, f.st, view.WholeGPU, 3)
	if got.Now != 2 || got.Repartition != 2 || got.Hardware != 2 || got.Evict.Fits != 3 || !slices.Equal(got.Evict.Evictions, []diagnosis.PodName{{Namespace: "a", Name: "one"}}) {
		t.Errorf("three: %+v", got)
	}
	got = capacityOf(t, f.st, view.WholeGPU, 9)
	if got.Evict.Fits != 5 || len(got.Evict.Evictions) != 2 || got.Evict.Proof.Cost != (diagnosis.VictimCost{Number: 2, LostSeconds: 7200}) {
		t.Errorf("nine: %+v", got.Evict)
	}
}

func budgetOf(name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "s"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}
}

func TestWhoMayBeEvicted(t *testing.T) {
	full := func(f *fleet) (x, y *corev1.Pod) {
		n := f.node("n")
		f.report(n, nodeprobe.GPU{Instances: []nodeprobe.Instance{f.instance("3g.20gb", 0, "x"), f.instance("3g.20gb", 4, "y")}})
		return f.pod("x", "n", view.MIGPrefix+"3g.20gb", 1), f.pod("y", "n", view.MIGPrefix+"3g.20gb", 1)
	}
	for name, c := range map[string]struct {
		change func(f *fleet, x, y *corev1.Pod)
		asked  int
		want   []diagnosis.PodName
	}{
		"the one that lost less": {func(_ *fleet, _, y *corev1.Pod) {
			y.Status.StartTime = &metav1.Time{Time: capacityNow.Add(-time.Minute)}
		}, 1, []diagnosis.PodName{{Namespace: "a", Name: "y"}}},
		"the lower priority": {func(_ *fleet, x, y *corev1.Pod) {
			x.Spec.Priority = new(int32(-1))
			y.Status.StartTime = &metav1.Time{Time: capacityNow}
		}, 1, []diagnosis.PodName{{Namespace: "a", Name: "x"}}},
		"none above the asker": {func(_ *fleet, x, _ *corev1.Pod) { x.Spec.Priority = new(int32(1)) }, 2, []diagnosis.PodName{{Namespace: "a", Name: "y"}}},
		"no system pods": {func(_ *fleet, x, y *corev1.Pod) {
			x.Spec.Priority, y.Spec.Priority = new(int32(view.SystemCritical)), new(int32(view.SystemCritical))
		}, 1, []diagnosis.PodName{}},
		"no pods of a DaemonSet": {func(_ *fleet, x, _ *corev1.Pod) {
			x.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: new(true)}}
		}, 2, []diagnosis.PodName{{Namespace: "a", Name: "y"}}},
		"as the budget allows": {func(f *fleet, x, y *corev1.Pod) {
			x.Labels["app"], y.Labels["app"] = "s", "s"
			f.st.PDBs = []*policyv1.PodDisruptionBudget{budgetOf("b", 1)}
		}, 2, []diagnosis.PodName{{Namespace: "a", Name: "x"}}},
		"nobody with two budgets": {func(f *fleet, x, _ *corev1.Pod) {
			x.Labels["app"] = "s"
			f.st.PDBs = []*policyv1.PodDisruptionBudget{budgetOf("b", 5), budgetOf("c", 5)}
		}, 1, []diagnosis.PodName{{Namespace: "a", Name: "y"}}},
		"a gang as a whole": {func(f *fleet, x, _ *corev1.Pod) {
			x.Labels["scheduling.x-k8s.io/pod-group"] = "g"
			f.node("other")
			f.pod("z", "other", "cpu", 1).Labels["scheduling.x-k8s.io/pod-group"] = "g"
		}, 2, []diagnosis.PodName{{Namespace: "a", Name: "x"}, {Namespace: "a", Name: "y"}, {Namespace: "a", Name: "z"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			x, y := full(f)
			c.change(f, x, y)
			if got := capacityOf(t, f.st, "nvidia.com/mig-3g.20gb", c.asked); !slices.Equal(got.Evict.Evictions, c.want) {
				t.Errorf("%+v, want %v", got.Evict, c.want)
			}
		})
	}
}

func TestCapacityRefuses(t *testing.T) {
	f := newFleet(t)
	for _, name := range []string{"", "cpu", "nvidia.com/mig-", "nvidia.com/gpu.shared", "mig-3g.20gb"} {
		if list, err := Capacity(t.Context(), f.st, []Ask{{name, 1}}, Guest{}); err == nil || len(list.Items) > 0 {
			t.Errorf("%q: %v, %v", name, list, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Capacity(ctx, f.st, []Ask{{view.WholeGPU, 1}}, Guest{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := capacityOf(t, f.st, "nvidia.com/mig-9g.90gb", 1); got.Now+got.Hardware+got.Evict.Fits != 0 {
		t.Errorf("an empty cluster: %+v", got)
	}
}
