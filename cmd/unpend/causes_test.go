package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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
	extra  []any             // other objects, with their apiVersion and kind
	// advertised, by resource, instead of what gpu-1 would advertise.
	advertised map[string]string
	edit       func(*corev1.Pod)                           // of the waiting pod
	report     func(*corev1.Node, *nodeprobe.NodeGeometry) // of gpu-1
	// unreported nodes have no NodeGeometry.
	unreported bool
	want       rca.CauseID
	certainty  rca.Certainty // checked when set
	kinds      []rca.FixKind // of the first fix
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
		maps.Copy(obj.Labels, c.labels[n.Name])
		for name, q := range c.advertised {
			obj.Status.Capacity[corev1.ResourceName(name)] = resource.MustParse(q)
			obj.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse(q)
		}
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
		for i := range c.whole[n.Name] {
			geo.Report.GPUs[i].Holders = []nodeprobe.Holder{hold(i, "nvidia.com/gpu")}
		}
		if c.report != nil {
			c.report(obj, geo)
		}
		add("v1", "Node", obj)
		if !c.unreported {
			add("unpend.dev/v1alpha1", "NodeGeometry", geo)
		}
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
	p.Spec.NodeSelector, p.Status.Phase = c.node, corev1.PodPending
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
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(ask): *resource.NewQuantity(count, resource.DecimalSI)}}}}}}
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
	config := func(label string) map[string]map[string]string {
		return map[string]map[string]string{"gpu-1": {"nvidia.com/mig.config": label}}
	}
	notReady := all1g("gpu-1")
	notReady.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	twos := all1g("gpu-1")
	twos.Layouts = [][]sim.Placed{sim.All(a100, "2g.10gb")}
	two := all1g("gpu-1")
	two.GPUs, two.Layouts = 2, [][]sim.Placed{full, full}
	cases := map[string]told{
		"entry misspelled":        {nodes: []sim.Node{all1g("gpu-1")}, labels: config("all-2g.10bg"), extra: []any{migParted("all-1g.5gb", "1g.5gb", 7)}, ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGConfigUnknown},
		"entries not read":        {nodes: []sim.Node{all1g("gpu-1")}, labels: config("all-2g.10bg"), ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGLayoutMismatch},
		"node not ready":          {nodes: []sim.Node{notReady}, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.NodeNotReady, kinds: []rca.FixKind{rca.Wait}},
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
		"plugin not restarted":    {nodes: []sim.Node{twos}, advertised: map[string]string{"nvidia.com/mig-1g.5gb": "7", "nvidia.com/mig-2g.10gb": "0"}, ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGLayoutDrift, certainty: rca.Proven},
		"layout lost":             {nodes: []sim.Node{all1g("gpu-1")}, labels: config("all-2g.10gb"), extra: []any{migParted("all-2g.10gb", "2g.10gb", 3)}, ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGLayoutDrift, certainty: rca.Proven},
		"layout as applied":       {nodes: []sim.Node{all1g("gpu-1")}, labels: config("all-1g.5gb"), extra: []any{migParted("all-1g.5gb", "1g.5gb", 7)}, ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGLayoutMismatch, certainty: rca.Proven},
		"MIG off":                 {nodes: []sim.Node{off("gpu-1", 1)}, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.MIGLayoutMismatch, certainty: rca.Proven},
		"gated":                   {nodes: []sim.Node{all1g("gpu-1")}, edit: gated("example.com/quota"), ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.SchedulingGated, kinds: []rca.FixKind{rca.Manual}},
		"gated by Kueue":          {nodes: []sim.Node{all1g("gpu-1")}, edit: gated("kueue.x-k8s.io/admission"), ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.QueueNotAdmitted, kinds: []rca.FixKind{rca.Wait}},
		"nobody schedules it":     {nodes: []sim.Node{all1g("gpu-1")}, edit: scheduledBy("vulcano"), ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.SchedulerMissing},
		"no node":                 {ask: "nvidia.com/mig-1g.5gb", count: 1, extra: []any{emptyList("Node")}, want: rca.NoNodes},
		"NUMA":                    {nodes: []sim.Node{off("gpu-1", 2)}, edit: refused("TopologyAffinityError", "Pod was rejected: Resources cannot be allocated with Topology locality"), ask: "nvidia.com/gpu", count: 2, want: rca.TopologyAlignmentRefused},
		"two shares":              {nodes: []sim.Node{off("gpu-1", 2)}, edit: refused("UnexpectedAdmissionError", `Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = invalid allocation request for "nvidia.com/gpu.shared": invalid request: maximum request size for shared resources is 1; found 2, which is unexpected`), ask: "nvidia.com/gpu", count: 2, want: rca.SharedRequestTooLarge},
		"no healthy device":       {nodes: []sim.Node{off("gpu-1", 2)}, edit: refused("UnexpectedAdmissionError", "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected"), ask: "nvidia.com/gpu", count: 1, want: rca.KubeletAdmissionRefused},
		"out of GPUs":             {nodes: []sim.Node{off("gpu-1", 2)}, edit: refused("OutOfnvidia.com/gpu", "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 8, capacity: 8"), ask: "nvidia.com/gpu", count: 1, want: rca.KubeletAdmissionRefused},
		"more than a node has":    {nodes: []sim.Node{off("gpu-1", 2)}, ask: "nvidia.com/gpu", count: 4, want: rca.GPURequestTooLarge, certainty: rca.Proven},
		"plugin down":             {nodes: []sim.Node{off("gpu-1", 2)}, advertised: map[string]string{"nvidia.com/gpu": "0"}, ask: "nvidia.com/gpu", count: 1, want: rca.DevicePluginDown, certainty: rca.Proven},
		"an old key at 0":         {nodes: []sim.Node{all1g("gpu-1")}, advertised: map[string]string{"nvidia.com/mig-2g.10gb": "0"}, ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGLayoutMismatch},
		"one GPU sick":            {nodes: []sim.Node{off("gpu-1", 2)}, whole: map[string]int{"gpu-1": 1}, report: sick, ask: "nvidia.com/gpu", count: 1, want: rca.GPUUnhealthy, certainty: rca.Proven},
		"shares renamed":          {nodes: []sim.Node{off("gpu-1", 2)}, advertised: map[string]string{"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"}, ask: "nvidia.com/gpu", count: 1, want: rca.SharedResourceRenamed, kinds: []rca.FixKind{rca.ChangeRequest}},
		"shares not renamed":      {nodes: []sim.Node{off("gpu-1", 2)}, ask: "nvidia.com/gpu.shared", count: 1, want: rca.SharedResourceRenamed, kinds: []rca.FixKind{rca.ChangeRequest}},
		"manager stuck":           {nodes: []sim.Node{all1g("gpu-1")}, labels: state("pending"), report: stateSet(7 * time.Minute), ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGConfigStuck, certainty: rca.Proven},
		"manager still at work":   {nodes: []sim.Node{all1g("gpu-1")}, labels: state("pending"), report: stateSet(5 * time.Minute), ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGConfigInProgress, certainty: rca.Proven},
		"capacity gone":           {nodes: []sim.Node{all1g("gpu-1")}, labels: state("pending"), advertised: map[string]string{"nvidia.com/mig-1g.5gb": "0"}, ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGConfigStuck, certainty: rca.Likely},
		"entry impossible":        {nodes: []sim.Node{all1g("gpu-1")}, labels: config("odd"), extra: []any{migParted("odd", "3g.20gb", 3)}, ask: "nvidia.com/mig-3g.20gb", count: 1, want: rca.MIGConfigInvalidForGPU, certainty: rca.Proven},
		"mode waits":              {nodes: []sim.Node{off("gpu-1", 1)}, report: modePending, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.MIGModePending, certainty: rca.Proven},
		"anti-affinity":           {nodes: []sim.Node{all1g("gpu-1")}, held: map[string][]sim.Placed{"gpu-1": full[:1]}, edit: apart, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.PodAffinityConflict, certainty: rca.Proven},
		"spread":                  {nodes: []sim.Node{all1g("gpu-1")}, edit: spread, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.TopologySpreadConflict, certainty: rca.Proven},
		"volume missing":          {nodes: []sim.Node{all1g("gpu-1")}, edit: mounting("data"), ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.VolumeConflict, certainty: rca.Proven},
		"counts leave a GPU":      {unreported: true, nodes: []sim.Node{two}, held: map[string][]sim.Placed{"gpu-1": full[:1]}, ask: "nvidia.com/mig-3g.20gb", count: 1, want: rca.MIGLayoutMismatch, certainty: rca.Possible},
		"counts leave no slices":  {unreported: true, nodes: []sim.Node{all1g("gpu-1")}, held: map[string][]sim.Placed{"gpu-1": full}, ask: "nvidia.com/mig-2g.10gb", count: 1, want: rca.MIGFull, certainty: rca.Possible},
		"counts settle nothing":   {unreported: true, nodes: []sim.Node{all1g("gpu-1")}, held: map[string][]sim.Placed{"gpu-1": full[:1]}, ask: "nvidia.com/mig-3g.20gb", count: 1, want: rca.MIGLayoutMismatch, certainty: rca.Possible},
		"nothing blocks":          {nodes: []sim.Node{all1g("gpu-1")}, ask: "nvidia.com/mig-1g.5gb", count: 1, want: rca.Unknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := why(t, "-f", dumpOf(t, c))
			if d.Causes[0].ID != c.want || len(d.Causes[0].Evidence) == 0 {
				t.Errorf("cause %s (%s), want %s; %+v", d.Causes[0].ID, d.Causes[0].Says, c.want, d.Nodes)
			}
			if c.certainty != "" && d.Causes[0].Certainty != c.certainty {
				t.Errorf("%s is %s, want %s", c.want, d.Causes[0].Certainty, c.certainty)
			}
			if f := d.Fixes[0]; c.kinds != nil && !slices.Equal(f.Kinds, c.kinds) {
				t.Errorf("first fix %v %q, want %v", f.Kinds, f.Title, c.kinds)
			}
		})
	}
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
	verdict := func(allowed int32) rca.Fix {
		c.extra = []any{guard(allowed)}
		for _, f := range why(t, "-f", dumpOf(t, c)).Fixes {
			if f.Kind == rca.RepartitionGPU {
				return f
			}
		}
		t.Fatalf("%d allowed: no repartition is offered", allowed)
		return rca.Fix{}
	}
	if f := verdict(2); f.Proof.Verdict != rca.Schedules {
		t.Errorf("two of two may leave: %+v", f.Proof)
	}
	if f := verdict(1); f.Proof.Verdict != rca.Waits || f.Proof.Why != "accepted on a copy once PodDisruptionBudget demo/holders allows 1 more of these evictions; each evicted pod was placed again" {
		t.Errorf("one of two may leave: %+v", f.Proof)
	}
}

func gated(gate string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
		p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
	}
}

func scheduledBy(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulerName, p.Status.Conditions = name, nil }
}

// refused is how the kubelet leaves a pod it turns away.
func refused(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = "gpu-1"
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message}
	}
}

func apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{}, TopologyKey: "kubernetes.io/hostname"}}}}
}

func spread(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "example.com/rack", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}}}
}

func mounting(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	}
}

func sick(n *corev1.Node, geo *nodeprobe.NodeGeometry) {
	n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("1")
	geo.Report.GPUs[1].Healthy = false
}

func modePending(_ *corev1.Node, geo *nodeprobe.NodeGeometry) {
	geo.Report.GPUs[0].MIG = &nodeprobe.MIGMode{Current: false, Pending: true}
}

// stateSet has the label of MIG manager's state written so long ago.
func stateSet(ago time.Duration) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, geo *nodeprobe.NodeGeometry) {
		at := metav1.NewTime(geo.Report.ObservedAt.Add(-ago))
		n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "nvidia-mig-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:nvidia.com/mig.config.state":{}}}}`)}}
	}
}

// emptyList says that a kind was read and there is none.
func emptyList(kind string) any {
	return map[string]any{"apiVersion": "v1", "kind": kind + "List", "items": []any{}}
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
	if f.Kind != rca.RepartitionGPU || f.Proof.Verdict != rca.Schedules || len(f.Cost.Evictions) != 0 || len(f.Actions) != 1 {
		t.Fatalf("first fix %+v", f)
	}
	r := f.Actions[0].Relayout
	if !slices.Equal(r.GPUs, []int{1, 2}) || r.Layouts[0]["1g.5gb"] != 7 || r.Layouts[1]["3g.20gb"]+r.Layouts[2]["3g.20gb"] != 3 {
		t.Errorf("GPUs %v, layouts %v", r.GPUs, r.Layouts)
	}
	// Seven of them are more than three GPUs hold.
	c.count = 7
	for _, f := range why(t, "-f", dumpOf(t, c)).Fixes {
		if f.Kind == rca.RepartitionGPU {
			t.Errorf("seven: %+v", f)
		}
	}
}
