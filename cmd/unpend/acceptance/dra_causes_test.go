package acceptance

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/diagnosis"
)

const draDriver = "gpu.nvidia.com"

// draWorld builds a small cluster whose devices a DRA driver offers.
type draWorld struct {
	t       *testing.T
	objects []runtime.Object
	unread  []string // kinds the dump does not hold
}

// draKinds are the kinds of resource.k8s.io, which a dump holds also where there is none.
var draKinds = []string{"ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"}

func draCluster(t *testing.T) *draWorld {
	w := &draWorld{t: t}
	w.class(draDriver, `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`)
	w.class("mig.nvidia.com", `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig"`)
	return w
}

func (w *draWorld) add(o runtime.Object) { w.objects = append(w.objects, o) }

func (w *draWorld) node(name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}, CreationTimestamp: metav1.NewTime(draNow)}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.add(n)
}

var draNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func (w *draWorld) class(name, cel string) {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: cel}}}}}
	w.add(c)
}

// devices is a node's slice, as the driver publishes it.
func (w *draWorld) devices(node string, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpu.nvidia.com"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: draDriver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: devices}}
	w.add(s)
	return s
}

func gpuDevice(minor int, memory string) resourcev1.Device {
	kind, product := "gpu", "NVIDIA A100-SXM4-40GB"
	return resourcev1.Device{Name: fmt.Sprintf("gpu-%d", minor), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"type": {StringValue: &kind}, "productName": {StringValue: &product}}, Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}}}
}

func migDevice(name, profile, memory string) resourcev1.Device {
	d := gpuDevice(0, memory)
	kind := "mig"
	d.Name = name
	d.Attributes["type"], d.Attributes["profile"] = resourcev1.DeviceAttribute{StringValue: &kind}, resourcev1.DeviceAttribute{StringValue: &profile}
	return d
}

func (w *draWorld) claim(name, class string, count int64, cel ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name}}
	x := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	for _, e := range cel {
		x.Selectors = append(x.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: x}}
	w.add(c)
	return c
}

// held is a claim that a running pod of a ReplicaSet uses.
func (w *draWorld) held(pod, node, device string) *resourcev1.ResourceClaim {
	c := w.claim(pod, draDriver, 1)
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "gpu", Driver: draDriver, Pool: node, Device: device}}}}
	p := w.pod(pod, pod)
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: p.UID}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "holders", UID: "1", Controller: &yes}}
	return c
}

func (w *draWorld) pod(name, claim string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, UID: types.UID("uid-" + name)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	if claim != "" {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	}
	w.add(p)
	return p
}

func (w *draWorld) waiting(claim string) *corev1.Pod {
	p := w.pod("waiting", claim)
	p.Status.Phase = corev1.PodPending
	return p
}

func (w *draWorld) dump() string {
	w.t.Helper()
	var items []any
	for _, kind := range draKinds {
		if !slices.Contains(w.unread, kind) {
			items = append(items, map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": kind + "List", "items": []any{}})
		}
	}
	for _, o := range w.objects {
		gvks, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			w.t.Fatal(err)
		}
		if slices.Contains(w.unread, gvks[0].Kind) {
			continue
		}
		o.GetObjectKind().SetGroupVersionKind(gvks[0])
		items = append(items, o)
	}
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		w.t.Fatal(err)
	}
	return write(w.t, "cluster.json", string(data))
}

// atLeast is how a workload asks for memory of a device.
func atLeast(memory string) string {
	return `device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("` + memory + `")) >= 0`
}

// Each cause next to the one it is confused with.
func TestDRACausesAreToldApart(t *testing.T) {
	cases := map[string]struct {
		build     func(w *draWorld)
		want      diagnosis.CauseID
		certainty diagnosis.Certainty
		says      string
		kind      diagnosis.FixKind
		verdict   diagnosis.Verdict
		command   string // part of the first fix's commands
	}{
		"claim missing": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.waiting("train")
		}, diagnosis.DRAClaimMissing, diagnosis.Proven, "ResourceClaim train does not exist", diagnosis.Manual, diagnosis.Unproven, "get resourceclaims"},
		"claims not read": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.waiting("train")
			w.unread = []string{"ResourceClaim"}
		}, diagnosis.Unknown, diagnosis.Possible, "ResourceClaim objects could not be read", diagnosis.Manual, diagnosis.Unproven, ""},
		"claim of another namespace": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.claim("train", draDriver, 1).Namespace = "other"
			w.waiting("train")
		}, diagnosis.DRAClaimMissing, diagnosis.Proven, "ResourceClaim train does not exist", diagnosis.Manual, diagnosis.Unproven, ""},
		"claim being deleted": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			at := metav1.NewTime(draNow)
			c := w.claim("train", draDriver, 1)
			c.DeletionTimestamp, c.Finalizers = &at, []string{resourcev1.Finalizer}
			w.waiting("train")
		}, diagnosis.DRAClaimMissing, diagnosis.Proven, "is being deleted", diagnosis.Manual, diagnosis.Unproven, ""},
		"template missing": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			template := "one-gpu"
			w.waiting("").Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
		}, diagnosis.DRAClaimMissing, diagnosis.Proven, "ResourceClaimTemplate one-gpu does not exist", diagnosis.Manual, diagnosis.Unproven, ""},
		"claim not made yet": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			template := "one-gpu"
			w.add(&resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: template}})
			w.waiting("").Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
			w.add(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "e"}, Reason: "FailedResourceClaimCreation", Message: "PodResourceClaim gpu: quota",
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "demo", Name: "waiting"}})
		}, diagnosis.DRAClaimMissing, diagnosis.Proven, "no ResourceClaim was made for gpu", diagnosis.Manual, diagnosis.Unproven, ""},
		"claim made for another pod": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			template, claim := "one-gpu", "waiting-gpu"
			w.claim(claim, draDriver, 1)
			p := w.waiting("")
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim}}
		}, diagnosis.DRAClaimMissing, diagnosis.Proven, "was made for another pod", diagnosis.Manual, diagnosis.Unproven, ""},
		"no claim needed": {func(w *draWorld) {
			template := "one-gpu"
			p := w.waiting("")
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu"}}
		}, diagnosis.Unknown, diagnosis.Possible, "accept gpu-1", diagnosis.Manual, diagnosis.Unproven, ""},
		"class missing": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.claim("train", "gpu.nvidia.com.v2", 1)
			w.waiting("train")
		}, diagnosis.DRAClassMissing, diagnosis.Proven, "DeviceClass gpu.nvidia.com.v2 does not exist", diagnosis.Manual, diagnosis.Unproven, "kubectl get deviceclass gpu.nvidia.com.v2"},
		"classes not read": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.claim("train", "gpu.nvidia.com.v2", 1)
			w.waiting("train")
			w.unread = []string{"DeviceClass"}
		}, diagnosis.Unknown, diagnosis.Possible, "DeviceClass objects could not be read", diagnosis.Manual, diagnosis.Unproven, ""},
		"driver missing": {func(w *draWorld) {
			w.claim("train", draDriver, 1)
			w.waiting("train")
		}, diagnosis.DRADriverMissing, diagnosis.Proven, "no ResourceSlice of driver gpu.nvidia.com exists", diagnosis.Manual, diagnosis.Unproven, "kubectl get resourceslices"},
		"another driver": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi")).Spec.Driver = "gpu.example.com"
			w.claim("train", draDriver, 1)
			w.waiting("train")
		}, diagnosis.DRADriverMissing, diagnosis.Proven, "no ResourceSlice of driver gpu.nvidia.com exists", diagnosis.Manual, diagnosis.Unproven, ""},
		"slices not read": {func(w *draWorld) {
			w.claim("train", draDriver, 1)
			w.waiting("train")
			w.unread = []string{"ResourceSlice"}
		}, diagnosis.Unknown, diagnosis.Possible, "ResourceSlice objects could not be read", diagnosis.Manual, diagnosis.Unproven, ""},
		"driver half started": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi")).Spec.Pool.ResourceSliceCount = 2
			w.claim("train", draDriver, 1)
			w.waiting("train")
		}, diagnosis.DRADriverMissing, diagnosis.Proven, "pool gpu-1 has 1 of its 2 ResourceSlices", diagnosis.Manual, diagnosis.Unproven, ""},
		"memory too small": {func(w *draWorld) {
			w.devices("gpu-1", migDevice("gpu-0-mig-1g5gb-19-0", "1g.5gb", "4864Mi"), migDevice("gpu-0-mig-2g10gb-14-2", "2g.10gb", "9728Mi"))
			w.claim("train", "mig.nvidia.com", 1, atLeast("40Gi"))
			w.waiting("train")
		}, diagnosis.DRANoDeviceMatches, diagnosis.Proven, "memory >= 40Gi fails: the nearest device has 9728Mi", diagnosis.FixClaim, diagnosis.Schedules, `quantity(\"9728Mi\")`},
		"one clause of three": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.claim("train", draDriver, 1, `device.attributes["gpu.nvidia.com"].type == "gpu" && (`+atLeast("40Gi")+`) && device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3'`)
			w.waiting("train")
		}, diagnosis.DRANoDeviceMatches, diagnosis.Proven, `productName == 'NVIDIA H100 80GB HBM3' fails: the nearest device has "NVIDIA A100-SXM4-40GB"`, diagnosis.FixClaim, diagnosis.Schedules, "NVIDIA A100-SXM4-40GB"},
		"no class takes them": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.claim("train", "mig.nvidia.com", 1)
			w.waiting("train")
		}, diagnosis.DRANoDeviceMatches, diagnosis.Proven, `type == "mig" fails: the nearest device has "gpu"`, diagnosis.Manual, diagnosis.Unproven, ""},
		"too many asked": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"), gpuDevice(1, "40Gi"))
			w.claim("train", draDriver, 4)
			w.waiting("train")
		}, diagnosis.DRANoDeviceMatches, diagnosis.Proven, "2 devices match, 4 are asked", diagnosis.FixClaim, diagnosis.Unproven, ""},
		"tainted": {func(w *draWorld) {
			d := gpuDevice(0, "40Gi")
			d.Taints = []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			w.devices("gpu-1", d)
			w.claim("train", draDriver, 1)
			w.waiting("train")
		}, diagnosis.DRANoDeviceMatches, diagnosis.Proven, "tainted gpu.nvidia.com/xid=79:NoSchedule", diagnosis.Manual, diagnosis.Unproven, ""},
		"does not compile": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.claim("train", draDriver, 1, `device.driver == "gpu.nvidia.com" && device.attributes["memory"] >= 40000`)
			w.waiting("train")
		}, diagnosis.DRASelectorError, diagnosis.Proven, `does not compile: found no matching overload for '_>=_'`, diagnosis.FixClaim, diagnosis.Schedules, "replace --force"},
		"cannot be parsed": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.claim("train", draDriver, 1, `device.driver == "gpu.nvidia.com" && (`)
			w.waiting("train")
		}, diagnosis.DRASelectorError, diagnosis.Proven, "does not compile", diagnosis.FixClaim, diagnosis.Schedules, ""},
		"no such attribute": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.claim("train", draDriver, 1, `device.attributes["gpu.nvidia.com"].memory >= 40000`)
			w.waiting("train")
		}, diagnosis.DRASelectorError, diagnosis.Proven, "cannot be evaluated: no such key: memory", diagnosis.FixClaim, diagnosis.Schedules, ""},
		"all held": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.held("holder", "gpu-1", "gpu-0")
			w.claim("train", draDriver, 1, atLeast("40Gi"))
			w.waiting("train")
		}, diagnosis.DRADevicesInUse, diagnosis.Proven, "all are allocated", diagnosis.EvictPods, diagnosis.Schedules, "pods/holder/eviction"},
		"held beside a node without devices": {func(w *draWorld) {
			w.node("cpu-1")
			w.node("cpu-2")
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			c := w.held("holder", "gpu-1", "gpu-0")
			c.Status.ReservedFor = nil // nobody to evict
			w.claim("train", draDriver, 1)
			w.waiting("train")
		}, diagnosis.DRADevicesInUse, diagnosis.Proven, "all are allocated", diagnosis.Manual, diagnosis.Unproven, "get resourceclaim holder"},
		"its own claim on a node that is gone": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.devices("gpu-2", gpuDevice(0, "40Gi"))
			c := w.held("holder", "gpu-2", "gpu-0")
			c.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"gpu-2"}}}}}}
			w.waiting("holder")
		}, diagnosis.DRADevicesInUse, diagnosis.Proven, "all are allocated", diagnosis.EvictPods, diagnosis.Schedules, "pods/holder/eviction"},
		"an extended resource": {func(w *draWorld) {
			name := "nvidia.com/gpu"
			w.objects[0].(*resourcev1.DeviceClass).Spec.ExtendedResourceName = &name
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.held("holder", "gpu-1", "gpu-0")
			w.waiting("").Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		}, diagnosis.DRADevicesInUse, diagnosis.Proven, "all are allocated", diagnosis.EvictPods, diagnosis.Schedules, ""},
		"counters shared": {func(w *draWorld) {
			w.partitioned("gpu-1")
			w.held("holder", "gpu-1", "gpu-0-mig-2g10gb-14-0")
			w.claim("train", "mig.nvidia.com", 1, `device.attributes["gpu.nvidia.com"].profile == "3g.20gb"`)
			w.waiting("train")
		}, diagnosis.DRADevicesInUse, diagnosis.Proven, "all are allocated", diagnosis.EvictPods, diagnosis.Schedules, "pods/holder/eviction"},
		"counters enough": {func(w *draWorld) {
			w.partitioned("gpu-1")
			w.held("holder", "gpu-1", "gpu-0-mig-2g10gb-14-4")
			w.claim("train", "mig.nvidia.com", 1, `device.attributes["gpu.nvidia.com"].profile == "3g.20gb"`)
			w.waiting("train")
		}, diagnosis.Unknown, diagnosis.Possible, "accept gpu-1", diagnosis.Manual, diagnosis.Unproven, ""},
		"claims in a circle": {func(w *draWorld) {
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			a, b := w.held("a", "gpu-1", "gpu-0"), w.claim("b", draDriver, 1)
			a.OwnerReferences = []metav1.OwnerReference{{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim", Name: "b", UID: "b"}}
			b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim", Name: "a", UID: "a"}}
			p := w.waiting("b")
			b.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "waiting", UID: p.UID}}
			a.Status.ReservedFor = append(a.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "waiting", UID: p.UID})
		}, diagnosis.DRADevicesInUse, diagnosis.Proven, "all are allocated", diagnosis.Manual, diagnosis.Unproven, ""}, // the waiting pod itself keeps it
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := draCluster(t)
			w.node("gpu-1")
			c.build(w)
			d := why(t, "-f", w.dump())
			root := d.Causes[0]
			if root.ID != c.want || root.Certainty != c.certainty || !strings.Contains(root.Says, c.says) || len(root.Evidence) == 0 {
				t.Errorf("cause %s, %s: %q; want %s, %s, %q; evidence %v, blockers %+v", root.ID, root.Certainty, root.Says, c.want, c.certainty, c.says, root.Evidence, d.Nodes)
			}
			if len(d.Causes) != 1 && c.want != diagnosis.DRADevicesInUse {
				t.Errorf("more causes: %+v", d.Causes[1:])
			}
			f := d.Fixes[0]
			if c.kind == diagnosis.EvictPods { // who leaves would wait in its place: that comes after waiting
				if f.Kind != diagnosis.Wait || len(d.Fixes) < 2 {
					t.Fatalf("fixes %+v", d.Fixes)
				}
				f = d.Fixes[1]
			}
			if f.Kind != c.kind || f.Proof.Verdict != c.verdict || !strings.Contains(strings.Join(f.Commands, "\n"), c.command) {
				t.Errorf("first fix %s %q: %s (%s), commands %s; want %s, %s, %q", f.Kind, f.Title, f.Proof.Verdict, f.Proof.Why, strings.Join(f.Commands, "\n"), c.kind, c.verdict, c.command)
			}
		})
	}
}

// partitioned publishes one GPU that can be cut: 3g at 0 or 4, 2g at 0, 2 or 4,
// which share its memory slices.
func (w *draWorld) partitioned(node string) {
	counters := map[string]resourcev1.Counter{}
	for i := range 8 {
		counters[fmt.Sprintf("memory-slice-%d", i)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	part := func(name, profile string, start, size int) resourcev1.Device {
		d := migDevice(name, profile, "9728Mi")
		used := map[string]resourcev1.Counter{}
		for i := range size {
			used[fmt.Sprintf("memory-slice-%d", start+i)] = resourcev1.Counter{Value: resource.MustParse("1")}
		}
		d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0-counter-set", Counters: used}}
		return d
	}
	s := w.devices(node, part("gpu-0-mig-3g20gb-9-0", "3g.20gb", 0, 4), part("gpu-0-mig-2g10gb-14-0", "2g.10gb", 0, 2), part("gpu-0-mig-2g10gb-14-4", "2g.10gb", 4, 2))
	s.Spec.Pool.ResourceSliceCount = 2
	sets := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-counters"}, Spec: resourcev1.ResourceSliceSpec{Driver: draDriver, NodeName: &node,
		Pool: s.Spec.Pool, SharedCounters: []resourcev1.CounterSet{{Name: "gpu-0-counter-set", Counters: counters}}}}
	w.add(sets)
}

// What an older API server serves is read as the newest: the same cluster, the same
// answer. A version nobody knows is named, and proves nothing.
func TestOldVersionsOfClaims(t *testing.T) {
	cluster := func(version, request, device string) string {
		return write(t, "cluster.yaml", `
{apiVersion: v1, kind: Node, metadata: {name: gpu-1}, status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}}}
---
{apiVersion: `+version+`, kind: DeviceClass, metadata: {name: mig.nvidia.com}, spec: {selectors: [{cel: {expression: 'device.driver == "gpu.nvidia.com"'}}]}}
---
{apiVersion: `+version+`, kind: ResourceSlice, metadata: {name: s}, spec: {driver: gpu.nvidia.com, nodeName: gpu-1, pool: {name: gpu-1, resourceSliceCount: 1}, devices: [{name: gpu-0, `+device+`}]}}
---
{apiVersion: `+version+`, kind: ResourceClaim, metadata: {namespace: demo, name: train}, spec: {devices: {requests: [{name: gpu, `+request+`}]}}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: demo, name: waiting}, spec: {containers: [{name: main}], resourceClaims: [{name: gpu, resourceClaimName: train}]}, status: {phase: Pending}}
`)
	}
	exact := `deviceClassName: mig.nvidia.com, allocationMode: ExactCount, count: 1, selectors: [{cel: {expression: 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0'}}]`
	memory := `capacity: {memory: {value: 9728Mi}}`
	for version, path := range map[string]string{
		"v1":      cluster("resource.k8s.io/v1", "exactly: {"+exact+"}", memory),
		"v1beta2": cluster("resource.k8s.io/v1beta2", "exactly: {"+exact+"}", memory),
		"v1beta1": cluster("resource.k8s.io/v1beta1", exact, "basic: {"+memory+"}"),
	} {
		d := why(t, "-f", path)
		if root := d.Causes[0]; root.ID != diagnosis.DRANoDeviceMatches || root.Says != "memory >= 40Gi fails: the nearest device has 9728Mi" || root.Certainty != diagnosis.Proven {
			t.Errorf("%s: %+v", version, root)
		}
		if c := d.Fixes[0].Commands[0]; !strings.Contains(c, `{"apiVersion":"resource.k8s.io/`+version+`",`) || strings.Contains(c, "exactly") != (version != "v1beta1") || !strings.Contains(c, "9728Mi") {
			t.Errorf("%s is not written as it was read: %s", version, c)
		}
	}
	d := why(t, "-f", cluster("resource.k8s.io/v1alpha3", exact, "basic: {}"))
	if d.Causes[0].ID != diagnosis.Unknown || !slices.Contains(d.Unread, "ResourceClaim: resource.k8s.io/v1alpha3 is not a version that can be read; whether its claims exist and who holds devices is not known") {
		t.Errorf("v1alpha3: %+v, unread %q", d.Causes[0], d.Unread)
	}
}

// The command that corrects a claim survives the shell: what it pipes is the claim,
// with nothing but the clause changed.
func TestClaimsAreCorrectedByOneCommand(t *testing.T) {
	w := draCluster(t)
	w.node("gpu-1")
	w.devices("gpu-1", gpuDevice(0, "40Gi"))
	w.claim("train", draDriver, 1, `'it\'s' != "" && device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100' && `+atLeast("80Gi"))
	w.waiting("train")
	f := why(t, "-f", w.dump()).Fixes[0]
	if f.Automatic || len(f.Commands) != 1 || len(f.Actions) != 0 {
		t.Fatalf("automatic %t, %d actions, commands %q", f.Automatic, len(f.Actions), f.Commands)
	}
	said, err := exec.CommandContext(t.Context(), "bash", "-c", strings.Replace(f.Commands[0], "kubectl replace --force -f -", "cat", 1)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got resourcev1.ResourceClaim
	if err := yaml.UnmarshalStrict(said, &got); err != nil {
		t.Fatal(err)
	}
	want := `'it\'s' != "" && device.attributes["gpu.nvidia.com"].productName == "NVIDIA A100-SXM4-40GB" && ` + atLeast("40Gi")
	x := got.Spec.Devices.Requests[0].Exactly
	if got.Kind != "ResourceClaim" || got.Namespace != "demo" || got.Name != "train" || x.DeviceClassName != draDriver || x.Count != 1 || len(x.Selectors) != 1 || x.Selectors[0].CEL.Expression != want {
		t.Errorf("%s\nwant %s", said, want)
	}
}
