package causes

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// gpusInUse: whole GPUs exist, enough for the request, and are requested by
// others.
var gpusInUse = Rule{ID: diagnosis.GPUsInUse, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	a, ok := b.Whole()
	if !ok || b.Allocatable < a.Count {
		return nil
	}
	what := "whole GPUs"
	if sharedGPUs(n, a) {
		what = "shares of GPUs"
	}
	f := &finding{diagnosis.Proven, heldSays(n, a, b, what), []diagnosis.Evidence{n.UsedOf(a, b.Allocatable)}}
	f.overdue(c, n, a.Resource)
	f.beside(c.misread(n))
	return f
}}

// overdue tells, too, of holders that should have ended long ago: a kubelet that cannot end a pod, or
// who has a finalizer on it, keeps what it has from others (gpu-operator issue 303).
func (f *finding) overdue(c *Case, n *view.Node, held corev1.ResourceName) {
	late := view.Overdue(n, held, c.Cluster.State.Now)
	if len(late) == 0 {
		return
	}
	f.Says += "; " + view.PodList(late) + " should have ended"
	for _, p := range late {
		f.Evidence = append(f.Evidence, diagnosis.Fact("Pod/"+p.Namespace+"/"+p.Name, fmt.Sprintf("should have ended at %s UTC, and is still on %s", p.DeletionTimestamp.UTC().Format("2006-01-02 15:04:05"), n.Name),
			diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name), diagnosis.That("metadata.deletionTimestamp", "", diagnosis.Is, p.DeletionTimestamp.UTC().Format(time.RFC3339))))
	}
}

// misread is a configuration for sharing the node's GPUs that is not in force; nil for none.
func (c *Case) misread(n *view.Node) *stack.Misread { return stack.Of(c.Cluster).Misread(n) }

// beside tells it beside what was found.
func (f *finding) beside(m *stack.Misread) {
	if m != nil {
		f.Says += "; " + m.Says
		f.Evidence = append(f.Evidence, m.Evidence...)
	}
}

// heldSays says that all are held, or that too few are left of what the node offers.
func heldSays(n *view.Node, a view.Ask, b *blocker, what string) string {
	if used := n.Requested[a.Resource]; used.Value() < b.Allocatable {
		return "fewer " + what + " are free than it asks"
	}
	return "all " + what + " are held"
}

// sharedGPUs says that the device plugin offers a GPU of the node several times over: by
// time-slicing or MPS, with or without another name (GFD's labels, k8s-device-plugin README).
func sharedGPUs(n *view.Node, a view.Ask) bool {
	replicas, err := strconv.Atoi(n.Labels["nvidia.com/gpu.replicas"])
	return strings.HasSuffix(string(a.Resource), ".shared") || strings.HasSuffix(n.Labels["nvidia.com/gpu.product"], "-SHARED") || err == nil && replicas > 1
}

// devicesInUse: the same of devices that other plugins announce, of other makers or for virtual
// machines.
var devicesInUse = Rule{ID: diagnosis.GPUsInUse, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	name := string(b.scarce)
	if !strings.Contains(name, "/") || view.IsGPU(b.scarce) {
		return nil
	}
	has, wants := n.Status.Allocatable[b.scarce], c.Wants[b.scarce]
	if has.IsZero() || has.Cmp(wants) < 0 {
		return nil
	}
	b.Allocatable = has.Value()
	a := view.Ask{Resource: b.scarce, Count: wants.Value()}
	f := &finding{diagnosis.Proven, heldSays(n, a, b, name), []diagnosis.Evidence{n.UsedOf(a, b.Allocatable)}}
	f.overdue(c, n, b.scarce)
	return f
}}
