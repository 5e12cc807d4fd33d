package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
)

// told is one small cluster and what it must be told apart as.
type told struct {
	nodes  []sim.Node
	held   map[string][]sim.Placed // by node: instances of GPU 0 that pods hold
	whole  map[string]int          // by node: whole GPUs that pods hold
	labels map[string]map[string]string
	ask    string
	count  int64
	node   map[string]string // node selector
	want   rca.CauseID
	kinds  []rca.FixKind // of the first fix
}

func dumpOf(t *testing.T, c told) string {
	t.Helper()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var items []any
	add := func(apiVersion, kind string, o any) {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var item map[string]any
		if err := json.Unmarshal(data, &item); err != nil {
			t.Fatal(err)
		}
		item["apiVersion"], item["kind"] = apiVersion, kind
		items = append(items, item)
	}
	for _, n := range c.nodes {
		obj, geo := n.Object(now), n.Geometry(now)
		maps.Copy(obj.Labels, c.labels[n.Name])
		hold := func(i int, name string) nodeprobe.Holder {
			p := gpuPod(fmt.Sprintf("holder-%s-%d", n.Name, i), name, 1)
			p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "holders", UID: "1", Controller: &yes}}
			add("v1", "Pod", p)
			return nodeprobe.Holder{Namespace: "demo", Pod: p.Name, Container: "main"}
		}
		for i, pl := range c.held[n.Name] {
			h := hold(i, "nvidia.com/mig-"+pl.Profile)
			for k := range geo.Report.GPUs[0].Instances {
				if geo.Report.GPUs[0].Instances[k].Start == pl.Start {
					geo.Report.GPUs[0].Instances[k].Holder = &h
				}
			}
		}
		for i := range c.whole[n.Name] {
			geo.Report.GPUs[i].Holders = []nodeprobe.Holder{hold(i, "nvidia.com/gpu")}
		}
		add("v1", "Node", obj)
		add("unpend.dev/v1alpha1", "NodeGeometry", geo)
	}
	p := gpuPod("waiting", c.ask, c.count)
	p.Spec.NodeSelector, p.Status.Phase = c.node, corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(now)}}
	add("v1", "Pod", p)
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "cluster.json", string(data))
}

func gpuPod(name, ask string, count int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(ask): *resource.NewQuantity(count, resource.DecimalSI)}}}}}}
}

// Each cause next to the one it is confused with.
func TestCausesAreToldApart(t *testing.T) {
	full := sim.All(a100, "1g.5gb")
	cordoned := all1g("gpu-1")
	cordoned.Cordoned = true
	single := all1g("gpu-1")
	single.Strategy = "single"
	threes := sim.Node{Name: "gpu-1", Model: a100, Layouts: [][]sim.Placed{{{Profile: "3g.20gb", Start: 0}, {Profile: "3g.20gb", Start: 4}}}}
	off := func(name string, gpus int) sim.Node {
		n := sim.Node{Name: name, Model: a100, GPUs: gpus}
		for i := range gpus {
			n.MIGOff = append(n.MIGOff, i)
		}
		return n
	}
	state := func(s string) map[string]map[string]string {
		return map[string]map[string]string{"gpu-1": {"nvidia.com/mig.config.state": s}}
	}
	cases := map[string]told{
		"all instances held":      {nodes: []sim.Node{all1g("gpu-1")}, held: map[string][]sim.Placed{"gpu-1": full}, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.MIGInstancesInUse, kinds: []rca.FixKind{rca.EvictPods}},
		"no slices left":          {nodes: []sim.Node{all1g("gpu-1")}, held: map[string][]sim.Placed{"gpu-1": full}, ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGFull, kinds: []rca.FixKind{rca.RepartitionGPU}},
		"both halves held":        {nodes: []sim.Node{threes}, held: map[string][]sim.Placed{"gpu-1": {{Profile: "3g.20gb", Start: 0}}}, ask: "nvidia.com/mig-4g.20gb", count: 1, want: rca.MIGFragmented, kinds: []rca.FixKind{rca.RepartitionGPU}},
		"mig under single":        {nodes: []sim.Node{single}, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.MIGStrategyMismatch, kinds: []rca.FixKind{rca.ChangeRequest}},
		"whole gpu under mixed":   {nodes: []sim.Node{all1g("gpu-1")}, ask: "nvidia.com/gpu", count: 1, want: rca.MIGStrategyMismatch, kinds: []rca.FixKind{rca.ChangeRequest}},
		"model without MIG":       {nodes: []sim.Node{{Name: "gpu-1", Model: "NVIDIA-L4"}}, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.GPUNotMIGCapable, kinds: []rca.FixKind{rca.ChangeRequest}},
		"manager failed":          {nodes: []sim.Node{all1g("gpu-1")}, labels: state("failed"), ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGConfigFailed},
		"manager at work":         {nodes: []sim.Node{all1g("gpu-1")}, labels: state("pending"), ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGConfigInProgress},
		"whole GPUs held":         {nodes: []sim.Node{off("gpu-1", 2)}, whole: map[string]int{"gpu-1": 2}, ask: "nvidia.com/gpu", count: 1, want: rca.GPUsInUse, kinds: []rca.FixKind{rca.EvictPods}},
		"free on different nodes": {nodes: []sim.Node{off("gpu-1", 2), off("gpu-2", 2)}, whole: map[string]int{"gpu-1": 1, "gpu-2": 1}, ask: "nvidia.com/gpu", count: 2, want: rca.GPUsFragmentedAcrossNodes, kinds: []rca.FixKind{rca.MovePods}},
		"cordoned":                {nodes: []sim.Node{cordoned}, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.NodeCordoned, kinds: []rca.FixKind{rca.UncordonNode}},
		"selector misspelled":     {nodes: []sim.Node{all1g("gpu-1")}, node: map[string]string{"nvidia.com/gpu.product": "A100-SXM4-40GB"}, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.NodeSelectorMismatch, kinds: []rca.FixKind{rca.FixSelector}},
		"nothing blocks":          {nodes: []sim.Node{all1g("gpu-1")}, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.Unknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := why(t, "-f", dumpOf(t, c))
			if d.Causes[0].ID != c.want || len(d.Causes[0].Evidence) == 0 {
				t.Errorf("cause %s (%s), want %s; %+v", d.Causes[0].ID, d.Causes[0].Says, c.want, d.Nodes)
			}
			if f := d.Fixes[0]; c.kinds != nil && !slices.Equal(f.Kinds, c.kinds) {
				t.Errorf("first fix %v %q, want %v", f.Kinds, f.Title, c.kinds)
			}
		})
	}
}
