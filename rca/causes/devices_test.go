package causes

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"
)

const driver = "gpu.nvidia.com"

// publishes has a node offer so many devices of a model, with the class that takes them.
func (w *world) publishes(node, model string, count int) {
	w.Nodes = append(w.Nodes, plainNode(node))
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
	for i := range count {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}}})
	}
	w.ResourceSlices = append(w.ResourceSlices, s)
}

// class adds DeviceClass gpu.
func (w *world) class(expression string) {
	const name = "gpu"
	w.DeviceClasses = append(w.DeviceClasses, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: resourcev1.DeviceClassSpec{Selectors: selectors(expression)}})
}

func selectors(expressions ...string) []resourcev1.DeviceSelector {
	var out []resourcev1.DeviceSelector
	for _, e := range expressions {
		out = append(out, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	return out
}

// claim adds one for so many devices of class gpu; with devices of node n1 it is allocated.
func (w *world) claim(name string, count int64, own []resourcev1.DeviceSelector, given ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name)}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count, Selectors: own}}}}}}
	if len(given) > 0 {
		c.Status.Allocation = &resourcev1.AllocationResult{}
		for _, d := range given {
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: driver, Pool: "n1", Device: d})
		}
	}
	w.ResourceClaims = append(w.ResourceClaims, c)
	return c
}

func claims(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &name})
		p.Spec.Containers[0].Resources.Claims = append(p.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: name})
	}
}

const ofDriver = `device.driver == "gpu.nvidia.com"`

// Devices by claims: what is asked, and what there is.
func TestDevices(t *testing.T) {
	unprepared := func(w *world, message string) {
		w.pod("w", "n1", "", 0, claims("mine")).Status = corev1.PodStatus{Phase: corev1.PodPending}
		w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: "w", UID: "w"}, Reason: incident.FailedPrepare, Message: message, Source: corev1.EventSource{Component: "kubelet"}})
	}
	rows{
		"a claim that does not exist": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.pod("w", "", "", 0, claims("mine"), claims("second"))
		}, `
DRAClaimMissing proven n1: ResourceClaim mine does not exist
  ResourceClaim/ml/mine: does not exist
  ResourceClaim/ml/second: does not exist
`},
		"one that was not read is not gone": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.Unread["ResourceClaim"] = "forbidden"
			w.pod("w", "", "", 0, claims("mine"))
		}, `
Unknown possible n1: ResourceClaim objects could not be read, so its devices are not judged
  Pod/ml/w: ResourceClaim: forbidden
  Node/n1: is not judged
`},
		"one that may still be made": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.Live = true
			w.pod("w", "", "", 0, claims("mine")).CreationTimestamp = metav1.Time{Time: rcatest.Noon.Add(-30*time.Second + time.Millisecond)}
		}, `
Unknown possible n1: not settled: could not find ResourceClaim "ml/mine"
  Node/n1: DynamicResources: could not find ResourceClaim "ml/mine"
`},
		"one that should have been": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.Live = true
			w.pod("w", "", "", 0, claims("mine")).CreationTimestamp = metav1.Time{Time: rcatest.Noon.Add(-30 * time.Second)}
		}, `
DRAClaimMissing proven n1: ResourceClaim mine does not exist
  ResourceClaim/ml/mine: does not exist
`},
		"a class that nobody made": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.claim("mine", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, `
DRAClassMissing proven n1: DeviceClass gpu does not exist
  ResourceClaim/ml/mine: request gpu names DeviceClass gpu
  DeviceClass/gpu: does not exist
`},
		"a driver that publishes nothing": {func(w *world) {
			w.Nodes = append(w.Nodes, plainNode("n1"))
			w.class(ofDriver)
			w.claim("mine", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, `
DRADriverMissing proven n1: no ResourceSlice of driver gpu.nvidia.com exists: NVIDIA's DRA driver is not installed
  ResourceClaim/ml/mine: request gpu asks DeviceClass gpu
  DeviceClass/gpu: no ResourceSlice of driver gpu.nvidia.com exists
  DeviceClass/gpu: no DaemonSet of the cluster is NVIDIA's DRA driver
`},
		"no driver by name": {func(w *world) {
			w.Nodes = append(w.Nodes, plainNode("n1"))
			w.class("true")
			w.claim("mine", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, `
DRADriverMissing proven n1: no ResourceSlice of any driver exists
  ResourceClaim/ml/mine: request gpu asks DeviceClass gpu
  DeviceClass/gpu: no ResourceSlice of any driver exists
`},
		"a driver that has not published all": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.ResourceSlices[0].Spec.Pool.ResourceSliceCount = 2
			w.class(ofDriver)
			w.claim("mine", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, `
DRADriverMissing proven n1: driver gpu.nvidia.com has not published all: pool n1 has 1 of its 2 ResourceSlices
  ResourceClaim/ml/mine: request gpu asks DeviceClass gpu
  DeviceClass/gpu: driver gpu.nvidia.com has not published all: pool n1 has 1 of its 2 ResourceSlices
`},
		"devices of which none matches": {func(w *world) {
			w.publishes("n1", "a100", 2)
			w.class(ofDriver)
			w.claim("mine", 1, selectors(`device.attributes["gpu.nvidia.com"].model == "h100"`))
			w.pod("w", "", "", 0, claims("mine"))
		}, `
DRANoDeviceMatches proven n1: model == "h100" fails: the nearest device has "a100"
  ResourceClaim/ml/mine: request gpu asks 1 of DeviceClass gpu
  ResourceClaim/ml/mine: request gpu: device.attributes["gpu.nvidia.com"].model == "h100" is false
  ResourceSlice/n1: nearest device gpu-0 of driver gpu.nvidia.com: model "a100"
  Node/n1: 2 devices, none serves the claims
`},
		"devices that match, and not together": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.publishes("n2", "a100", 1)
			w.class(ofDriver)
			c := w.claim("mine", 1, nil)
			c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, *c.Spec.Devices.Requests[0].DeepCopy())
			c.Spec.Devices.Requests[1].Name = "second"
			name := resourcev1.FullyQualifiedName("gpu.nvidia.com/model")
			c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &name}, {}}
			w.pod("w", "", "", 0, claims("mine"))
		}, `
DRANoDeviceMatches proven n1,n2: more different devices are asked at once than any node has that match
  ResourceClaim/ml/mine: constraint matchAttribute gpu.nvidia.com/model
  Node/n1: device gpu-0 matches request gpu
  Node/n1: device gpu-0 matches request second
  Node/n1: 1 device, and it does not serve the claims
  Node/n2: device gpu-0 matches request gpu
  Node/n2: device gpu-0 matches request second
  Node/n2: 1 device, and it does not serve the claims
`},
		"devices that others hold": {func(w *world) {
			w.publishes("n1", "a100", 3)
			w.publishes("n2", "h100", 1)
			w.class(ofDriver)
			h := w.claim("held", 2, nil, "gpu-0", "gpu-1")
			h.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "h", UID: "h"}}
			w.pod("h", "n1", "", 0, claims("held"))
			w.claim("mine", 2, selectors(`device.attributes["gpu.nvidia.com"].model == "a100"`))
			w.pod("w", "", "", 0, claims("mine"))
		}, `
DRANoDeviceMatches proven n2: model == "a100" fails: the nearest device has "h100"
  ResourceClaim/ml/mine: request gpu asks 2 of DeviceClass gpu
  ResourceClaim/ml/mine: request gpu: device.attributes["gpu.nvidia.com"].model == "a100" is false
  ResourceSlice/n2: nearest device gpu-0 of driver gpu.nvidia.com: model "h100"
  Node/n2: 1 device, and it does not serve the claims
DRADevicesInUse proven n1: devices that match exist, all are allocated
  ResourceSlice/n1: device gpu-0 is allocated to ResourceClaim ml/held, used by h
  ResourceSlice/n1: device gpu-1 is allocated to ResourceClaim ml/held, used by h
  Node/n1: devices gpu-0, gpu-1, gpu-2 match request gpu, 2 asked
`},
		"many that others hold": {func(w *world) {
			w.publishes("n1", "a100", 12)
			w.class(ofDriver)
			for i := range 12 {
				w.claim(fmt.Sprint("held-", i), 1, nil, fmt.Sprint("gpu-", i))
			}
			w.claim("mine", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, `
DRADevicesInUse proven n1: devices that match exist, all are allocated
  ResourceSlice/n1: device gpu-0 is allocated to ResourceClaim ml/held-0, which no pod uses
  ResourceSlice/n1: device gpu-1 is allocated to ResourceClaim ml/held-1, which no pod uses
  ResourceSlice/n1: device gpu-2 is allocated to ResourceClaim ml/held-2, which no pod uses
  ResourceSlice/n1: device gpu-3 is allocated to ResourceClaim ml/held-3, which no pod uses
  ResourceSlice/n1: device gpu-4 is allocated to ResourceClaim ml/held-4, which no pod uses
  ResourceSlice/n1: device gpu-5 is allocated to ResourceClaim ml/held-5, which no pod uses
  ResourceSlice/n1: device gpu-6 is allocated to ResourceClaim ml/held-6, which no pod uses
  ResourceSlice/n1: device gpu-7 is allocated to ResourceClaim ml/held-7, which no pod uses
  Node/n1: 12 devices match request gpu
`},
		"its own claim is allocated elsewhere": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.publishes("n2", "a100", 1)
			w.class(ofDriver)
			w.claim("mine", 1, nil, "gpu-0").Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}
			w.pod("w", "", "", 0, claims("mine"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "n2"} })
		}, `
NodeSelectorMismatch proven n1: selector kubernetes.io/hostname=n2 does not match
  Node/n1: label kubernetes.io/hostname is "n1", n2 was asked
DRADevicesInUse proven n2: devices that match exist, all are allocated
  Node/n2: device gpu-0 matches request gpu
  ResourceClaim/ml/mine: is allocated already, which no pod uses
`},
		"a selector that does not compile": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.class(ofDriver)
			w.claim("mine", 1, selectors(`device.attributes[`))
			w.claim("fine", 1, nil)
			w.pod("w", "", "", 0, claims("mine"), claims("fine"))
		}, `
DRASelectorError proven n1: selector device.attributes[ does not compile: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
  ResourceClaim/ml/mine: request gpu: device.attributes[: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
`},
		"a selector of a class that cannot be evaluated": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.publishes("n2", "a100", 1)
			w.class(`device.attributes["gpu.nvidia.com"].absent == "x"`)
			w.claim("mine", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, `
DRASelectorError proven n1,n2: selector absent == "x" cannot be evaluated: no such key: absent. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields
  DeviceClass/gpu: request gpu: device.attributes["gpu.nvidia.com"].absent == "x": no such key: absent. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields
  ResourceSlice/n1: device gpu-0 of driver gpu.nvidia.com
  ResourceSlice/n2: device gpu-0 of driver gpu.nvidia.com
`},
		"slices that were not read": {func(w *world) {
			w.Nodes = append(w.Nodes, plainNode("n1"))
			w.Unread["ResourceSlice"] = "forbidden"
			w.class(ofDriver)
			w.claim("mine", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, `
Unknown possible n1: ResourceSlice objects could not be read, so its devices are not judged
  Pod/ml/w: ResourceSlice: forbidden
  Node/n1: is not judged
`},
		"devices that the kubelet cannot prepare": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.class(ofDriver)
			w.claim("mine", 1, nil, "gpu-0")
			unprepared(w, "Failed to prepare dynamic resources: prepare dynamic resources: no\n such device")
		}, `
DRAPrepareFailed proven : the kubelet of n1 could not prepare its devices: no such device
  Pod/ml/w: is bound to n1 and Pending: its sandbox was not made
  Pod/ml/w: FailedPrepareDynamicResources: Failed to prepare dynamic resources: prepare dynamic resources: no such device
  ResourceClaim/ml/mine: is what the pod uses
`},
	}.run(t)
}
