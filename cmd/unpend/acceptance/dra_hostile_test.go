package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
)

// costly is a selector that compiles and cannot be evaluated within its budget
// (cel.CostLimit of resource.k8s.io): loops within loops, over a list in the text.
func costly() string {
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 300), ",") + "]"
	return list + ".all(a, " + list + ".all(b, " + list + ".all(c, a == b && b == c)))"
}

// What nobody should write is found all the same: one incident, a cause with
// evidence, a fix, and no other error.
func TestHostileClaims(t *testing.T) {
	reserved := func(c *resourcev1.ResourceClaim, pods ...string) {
		for _, p := range pods {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p, UID: types.UID("uid-" + p)})
		}
	}
	owned := func(o metav1.Object, kind, name string) {
		yes := true
		o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes}))
	}
	cases := map[string]struct {
		build func(w *draWorld)
		want  diagnosis.CauseID
		says  string
	}{
		"a selector that is no CEL": {func(w *draWorld) {
			w.claim("train", draDriver, 1, "\x00\xff ((( --- SELECT * FROM gpus; 日本")
			w.waiting("train")
		}, diagnosis.DRASelectorError, "does not compile"},
		"an empty selector": {func(w *draWorld) {
			w.claim("train", draDriver, 1, "")
			w.waiting("train")
		}, diagnosis.DRASelectorError, "does not compile"},
		"a selector that is no boolean": {func(w *draWorld) {
			w.claim("train", draDriver, 1, `device.driver`)
			w.waiting("train")
		}, diagnosis.DRASelectorError, "does not compile"},
		"a class that does not compile": {func(w *draWorld) {
			w.class("broken", "device.")
			w.claim("train", "broken", 1)
			w.waiting("train")
		}, diagnosis.DRASelectorError, "does not compile"},
		"a selector beyond its budget": {func(w *draWorld) {
			w.claim("train", draDriver, 1, costly())
			w.waiting("train")
		}, diagnosis.DRASelectorError, "cost"},
		"no requests": {func(w *draWorld) {
			w.claim("train", draDriver, 1).Spec.Devices.Requests = nil
			w.waiting("train")
		}, diagnosis.Unknown, "accept gpu-1"},
		"no requests, allocated elsewhere": {func(w *draWorld) {
			c := w.claim("train", draDriver, 1)
			c.Spec.Devices.Requests = nil
			c.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"gone"}}}}}}}
			w.waiting("train")
		}, diagnosis.DRADevicesInUse, "allocated"},
		"a request of nothing": {func(w *draWorld) {
			c := w.claim("train", draDriver, 1)
			c.Spec.Devices.Requests[0].Exactly = nil
			w.waiting("train")
		}, diagnosis.Unknown, "unknown request type"},
		"more devices than there can be": {func(w *draWorld) {
			w.claim("train", draDriver, 1<<62)
			w.waiting("train")
		}, diagnosis.DRANoDeviceMatches, "1 device matches, 4611686018427387904 are asked"},
		"a circle of claims and pods": {func(w *draWorld) {
			// a is reserved for the pod that waits for b, b for the one that waits for a.
			a, b := w.held("one", "gpu-1", "gpu-0"), w.claim("two", draDriver, 1)
			a.Status.ReservedFor = nil
			reserved(a, "waiting")
			reserved(b, "one")
			p := w.waiting("two")
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "other", ResourceClaimName: &a.Name})
		}, diagnosis.DRANoDeviceMatches, "more different devices are asked at once than any node has"}, // one device, two claims
		"a claim owned by itself": {func(w *draWorld) {
			owned(w.held("holder", "gpu-1", "gpu-0"), "ResourceClaim", "holder")
			owned(w.claim("train", draDriver, 1), "ResourceClaim", "train")
			w.waiting("train")
		}, diagnosis.DRADevicesInUse, "all are allocated"},
		"a claim owned by the waiting pod of another claim": {func(w *draWorld) {
			owned(w.held("holder", "gpu-1", "gpu-0"), "Pod", "waiting")
			owned(w.claim("train", draDriver, 1), "Pod", "holder")
			w.waiting("train")
		}, diagnosis.DRADevicesInUse, "all are allocated"},
		"a claim reserved for pods that are not there": {func(w *draWorld) {
			c := w.held("holder", "gpu-1", "gpu-0")
			c.Status.ReservedFor = nil
			reserved(c, "ghost", "ghost", "")
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{APIGroup: "batch", Resource: "jobs", Name: "holder"})
			w.claim("train", draDriver, 1)
			w.waiting("train")
		}, diagnosis.DRADevicesInUse, "all are allocated"},
		"a claim twice": {func(w *draWorld) {
			w.held("holder", "gpu-1", "gpu-0")
			w.claim("train", draDriver, 1)
			p := w.waiting("train")
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "again", ResourceClaimName: p.Spec.ResourceClaims[0].ResourceClaimName})
		}, diagnosis.DRANoDeviceMatches, "match together"}, // the scheduler allocates for each mention
		"a claim of no name": {func(w *draWorld) {
			w.waiting("").Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}, diagnosis.DRAClaimMissing, "no ResourceClaim was made for gpu"},
		"an allocation of devices that nobody offers": {func(w *draWorld) {
			c := w.held("holder", "gpu-1", "gpu-99")
			c.Status.Allocation.Devices.Results[0].Pool = "elsewhere"
			w.claim("train", draDriver, 2)
			w.waiting("train")
		}, diagnosis.DRANoDeviceMatches, "1 device matches, 2 are asked"},
		"a template that is not there, of a workload": {func(w *draWorld) {
			template := "\x1b[31mnone"
			w.waiting("").Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
		}, diagnosis.DRAClaimMissing, "does not exist"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := draCluster(t)
			w.node("gpu-1")
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			c.build(w)
			path := w.dump()
			d := why(t, "-f", path)
			root := d.Causes[0]
			if root.ID != c.want || !strings.Contains(root.Says, c.says) || len(root.Evidence) == 0 || len(d.Fixes) == 0 {
				t.Errorf("%s %q, evidence %v, blockers %+v; want %s, %q", root.ID, root.Says, root.Evidence, d.Nodes, c.want, c.says)
			}
			code, out, errs := call(t, "why", "-f", path)
			if code != 0 || strings.Contains(out, "\x1b[31m") || strings.Count(out, "\n") > 25 {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
}

// A selector that exceeds its budget on more devices than are asked is told of all
// nodes.
func TestCostlySelectorOnManyNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: each node uses the selector's budget up, as one does among the hostile claims")
	}
	const nodes = 12
	w := draCluster(t)
	for i := range nodes {
		name := fmt.Sprintf("gpu-%03d", i)
		w.node(name)
		d := gpuDevice(0, "40Gi")
		d.Attributes["uuid"] = resourcev1.DeviceAttribute{StringValue: &name}
		w.devices(name, d)
	}
	w.claim("train", draDriver, 1, costly()+` && device.attributes["gpu.nvidia.com"].uuid != ""`)
	w.waiting("train")
	d := why(t, "-f", w.dump())
	if root := d.Causes[0]; root.ID != diagnosis.DRASelectorError || !strings.Contains(root.Says, "cost limit") || len(root.Nodes) != nodes || len(d.Causes) != 1 {
		t.Errorf("%+v", d.Causes)
	}
}

// What no API server takes is a clear error.
func TestImpossibleClaims(t *testing.T) {
	for _, edit := range []func(*resourcev1.ResourceClaim){
		func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.Count = -1 },
		func(c *resourcev1.ResourceClaim) {
			c.Spec.Devices.Requests[0] = resourcev1.DeviceRequest{Name: "gpu", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "a", DeviceClassName: draDriver, Count: 1}, {Name: "b", DeviceClassName: draDriver, Count: -1}}}
		},
	} {
		w := draCluster(t)
		w.node("gpu-1")
		w.devices("gpu-1", gpuDevice(0, "40Gi"))
		edit(w.claim("train", draDriver, 1))
		w.waiting("train")
		code, out, errs := call(t, "why", "-f", w.dump())
		if code != 1 || out != "" || !strings.Contains(errs, "cluster.json: document 1, line 1: item ") || !strings.Contains(errs, "ResourceClaim train: request gpu asks for -1 devices") {
			t.Errorf("exit %d: %s%s", code, out, errs)
		}
	}
}

// 10,000 devices, every one asked about, are judged in seconds, and the nearest of
// them is found.
func TestTenThousandDevices(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, which is what it is about")
	}
	w := draCluster(t)
	for i := range 1250 {
		name := fmt.Sprintf("gpu-%04d", i)
		w.node(name)
		var devices []resourcev1.Device
		for k := range 8 {
			d := gpuDevice(k, "40Gi")
			uuid := fmt.Sprintf("GPU-%d-%d", i, k)
			d.Attributes["uuid"] = resourcev1.DeviceAttribute{StringValue: &uuid}
			if i == 777 && k == 3 {
				d.Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse("79Gi")}
			}
			devices = append(devices, d)
		}
		w.devices(name, devices...)
	}
	w.claim("train", draDriver, 1, atLeast("80Gi"), `device.attributes["gpu.nvidia.com"].uuid != "GPU-none"`)
	w.waiting("train")
	path := w.dump()
	began := time.Now()
	d := why(t, "-f", path)
	took := time.Since(began)
	t.Logf("10,000 devices on 1,250 nodes in %.1f s", took.Seconds())
	if root := d.Causes[0]; root.ID != diagnosis.DRANoDeviceMatches || root.Says != "memory >= 80Gi fails: the nearest device has 79Gi" || len(root.Nodes) != 1250 || took > 90*time.Second {
		t.Errorf("after %s: %s %q on %d nodes", took, root.ID, root.Says, len(root.Nodes))
	}
	if f := d.Fixes[0]; f.Kind != diagnosis.FixClaim || f.Proof.Verdict != diagnosis.Schedules || f.Proof.Node != "gpu-0777" {
		t.Errorf("first fix %s %q: %+v", f.Kind, f.Title, f.Proof)
	}
	if i := slices.IndexFunc(d.Nodes, func(n diagnosis.NodeBlockers) bool { return len(n.Blockers) != 1 }); i >= 0 {
		t.Errorf("blockers %+v", d.Nodes[i])
	}
}
