package acceptance

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
)

// told is one small cluster with a pod that waits.
type told struct {
	nodes []sim.Node
	held  map[string][]sim.Placed // by node: instances of GPU 0 that pods hold
	ask   string
	count int64
	extra []any             // other objects, with their apiVersion and kind
	edit  func(*corev1.Pod) // of the waiting pod
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
	var holders []*corev1.Pod
	for _, n := range c.nodes {
		obj, geo := n.Object(now), n.Geometry(now)
		hold := func(i int, name string) nodeprobe.Holder {
			p := gpuPod(fmt.Sprintf("holder-%s-%d", n.Name, i), name, 1)
			p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "holders", UID: "1", Controller: &yes}}
			p.Labels = map[string]string{"app": "holders"}
			holders = append(holders, p)
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
		add("v1", "Node", obj)
		add("unpend.dev/v1alpha1", "NodeGeometry", geo)
	}
	if len(holders) > 0 {
		count := int32(len(holders))
		add("apps/v1", "ReplicaSet", &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "holders", UID: "1"}, Spec: appsv1.ReplicaSetSpec{Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: holders[0].Labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: holders[0].Labels}, Spec: corev1.PodSpec{Containers: holders[0].Spec.Containers}}}})
	}
	for _, o := range c.extra {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, json.RawMessage(data))
	}
	p := gpuPod("waiting", c.ask, c.count)
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(now)}}
	if c.edit != nil {
		c.edit(p)
	}
	add("v1", "Pod", p)
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "cluster.json", string(data))
}

func gpuPod(name, ask string, count int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, UID: types.UID("uid-" + name)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(ask): *resource.NewQuantity(count, resource.DecimalSI)}}}}}}
}

// migParted is a mig-parted config with one entry for all GPUs.
func migParted(entry, profile string, count int) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "default-mig-parted-config"},
		Data: map[string]string{"config.yaml": fmt.Sprintf("version: v1\nmig-configs:\n  %s:\n  - devices: all\n    mig-enabled: true\n    mig-devices: {%q: %d}\n", entry, profile, count)}}
}

// A budget that guards the victims of a repartition makes it wait: the API server
// would refuse the evictions.
func TestBudgetsMakeRepartitionsWait(t *testing.T) {
	guard := func(allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "holders"},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}
	}
	c := told{nodes: []sim.Node{all1g("gpu-1")}, held: map[string][]sim.Placed{"gpu-1": sim.All(a100, "1g.5gb")[:2]}, ask: "nvidia.com/mig-2g.10gb", count: 1}
	verdict := func(allowed int32) diagnosis.Fix {
		c.extra = []any{guard(allowed)}
		for _, f := range why(t, "-f", dumpOf(t, c)).Fixes {
			if f.Kind == diagnosis.RepartitionGPU {
				return f
			}
		}
		t.Fatalf("%d allowed: no repartition is offered", allowed)
		return diagnosis.Fix{}
	}
	if f := verdict(2); f.Proof.Verdict != diagnosis.Schedules {
		t.Errorf("two of two may leave: %+v", f.Proof)
	}
	if f := verdict(1); f.Proof.Verdict != diagnosis.Waits || f.Proof.Why != "accepted on a copy once PodDisruptionBudget demo/holders allows 1 more of these evictions; each evicted pod was placed again" {
		t.Errorf("one of two may leave: %+v", f.Proof)
	}
}

// A request that no single GPU could hold is laid out over several, and over
// those whose holders cost least.
func TestRepartitionOverSeveralGPUs(t *testing.T) {
	ones := sim.All(a100, "1g.5gb")
	node := sim.Node{Name: "gpu-1", Model: a100, GPUs: 3, Config: "all-1g.5gb", Layouts: [][]sim.Placed{ones, ones, ones}}
	config := migParted("all-1g.5gb", "1g.5gb", 7)
	config.Name = "own-mig-parted"
	c := told{nodes: []sim.Node{node}, held: map[string][]sim.Placed{"gpu-1": ones[:2]}, ask: "nvidia.com/mig-3g.20gb", count: 3, extra: []any{config,
		map[string]any{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "cluster-policy"},
			"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": "own-mig-parted"}}}}}}
	f := why(t, "-f", dumpOf(t, c)).Fixes[0]
	if f.Kind != diagnosis.RepartitionGPU || f.Proof.Verdict != diagnosis.Schedules || len(f.Cost.Evictions) != 0 || len(f.Actions) != 1 {
		t.Fatalf("first fix %+v", f)
	}
	r := f.Actions[0].Relayout
	if !slices.Equal(r.GPUs, []int{1, 2}) || r.Layouts[0]["1g.5gb"] != 7 || r.Layouts[1]["3g.20gb"]+r.Layouts[2]["3g.20gb"] != 3 {
		t.Errorf("GPUs %v, layouts %v", r.GPUs, r.Layouts)
	}
	// Seven of them are more than three GPUs hold.
	c.count = 7
	for _, f := range why(t, "-f", dumpOf(t, c)).Fixes {
		if f.Kind == diagnosis.RepartitionGPU {
			t.Errorf("seven: %+v", f)
		}
	}
}
