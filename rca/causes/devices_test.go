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

func (w *world) class(name, expression string) {
	w.DeviceClasses = append(w.DeviceClasses, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: resourcev1.DeviceClassSpec{Selectors: selectors(expression)}})
}

func selectors(expressions ...string) []resourcev1.DeviceSelector {
	var out []resourcev1.DeviceSelector
	for _, e := range expressions {
		out = append(out, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	return out
}

// claim adds one for so many devices of a class; with devices of node n1 it is allocated.
func (w *world) claim(name, class string, count int64, own []resourcev1.DeviceSelector, given ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name)}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count, Selectors: own}}}}}}
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
		}, ``},
		"one that was not read is not gone": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.Unread["ResourceClaim"] = "forbidden"
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"one that may still be made": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.Live = true
			w.pod("w", "", "", 0, claims("mine")).CreationTimestamp = metav1.Time{Time: rcatest.Noon.Add(-30*time.Second + time.Millisecond)}
		}, ``},
		"one that should have been": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.Live = true
			w.pod("w", "", "", 0, claims("mine")).CreationTimestamp = metav1.Time{Time: rcatest.Noon.Add(-30 * time.Second)}
		}, ``},
		"a class that nobody made": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.claim("mine", "gpu", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"a driver that publishes nothing": {func(w *world) {
			w.Nodes = append(w.Nodes, plainNode("n1"))
			w.class("gpu", ofDriver)
			w.claim("mine", "gpu", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"no driver by name": {func(w *world) {
			w.Nodes = append(w.Nodes, plainNode("n1"))
			w.class("gpu", "true")
			w.claim("mine", "gpu", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"a driver that has not published all": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.ResourceSlices[0].Spec.Pool.ResourceSliceCount = 2
			w.class("gpu", ofDriver)
			w.claim("mine", "gpu", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"devices of which none matches": {func(w *world) {
			w.publishes("n1", "a100", 2)
			w.class("gpu", ofDriver)
			w.claim("mine", "gpu", 1, selectors(`device.attributes["gpu.nvidia.com"].model == "h100"`))
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"devices that match, and not together": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.publishes("n2", "a100", 1)
			w.class("gpu", ofDriver)
			c := w.claim("mine", "gpu", 1, nil)
			c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, *c.Spec.Devices.Requests[0].DeepCopy())
			c.Spec.Devices.Requests[1].Name = "second"
			name := resourcev1.FullyQualifiedName("gpu.nvidia.com/model")
			c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &name}, {}}
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"devices that others hold": {func(w *world) {
			w.publishes("n1", "a100", 3)
			w.publishes("n2", "h100", 1)
			w.class("gpu", ofDriver)
			h := w.claim("held", "gpu", 2, nil, "gpu-0", "gpu-1")
			h.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "h", UID: "h"}}
			w.pod("h", "n1", "", 0, claims("held"))
			w.claim("mine", "gpu", 2, selectors(`device.attributes["gpu.nvidia.com"].model == "a100"`))
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"many that others hold": {func(w *world) {
			w.publishes("n1", "a100", 12)
			w.class("gpu", ofDriver)
			for i := range 12 {
				w.claim(fmt.Sprint("held-", i), "gpu", 1, nil, fmt.Sprint("gpu-", i))
			}
			w.claim("mine", "gpu", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"its own claim is allocated elsewhere": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.publishes("n2", "a100", 1)
			w.class("gpu", ofDriver)
			w.claim("mine", "gpu", 1, nil, "gpu-0").Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}
			w.pod("w", "", "", 0, claims("mine"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "n2"} })
		}, ``},
		"a selector that does not compile": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.class("gpu", ofDriver)
			w.claim("mine", "gpu", 1, selectors(`device.attributes[`))
			w.claim("fine", "gpu", 1, nil)
			w.pod("w", "", "", 0, claims("mine"), claims("fine"))
		}, ``},
		"a selector of a class that cannot be evaluated": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.publishes("n2", "a100", 1)
			w.class("gpu", `device.attributes["gpu.nvidia.com"].absent == "x"`)
			w.claim("mine", "gpu", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"slices that were not read": {func(w *world) {
			w.Nodes = append(w.Nodes, plainNode("n1"))
			w.Unread["ResourceSlice"] = "forbidden"
			w.class("gpu", ofDriver)
			w.claim("mine", "gpu", 1, nil)
			w.pod("w", "", "", 0, claims("mine"))
		}, ``},
		"devices that the kubelet cannot prepare": {func(w *world) {
			w.publishes("n1", "a100", 1)
			w.class("gpu", ofDriver)
			w.claim("mine", "gpu", 1, nil, "gpu-0")
			unprepared(w, "Failed to prepare dynamic resources: prepare dynamic resources: no\n such device")
		}, ``},
	}.run(t)
}

// A pod names its claims by its own fields, and by what the scheduler made for it.
func TestClaimsOfAPod(t *testing.T) {
	mine := "mine"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"}, Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &mine}, {Name: "b", ResourceClaimTemplateName: &mine}, {Name: "c", ResourceClaimTemplateName: &mine}}}}
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c"}}
	p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "extended"}
	if got := fmt.Sprint((&Case{}).ClaimsOf(p)); got != "[ml/mine ml/extended]" {
		t.Error(got)
	}
}
