package causes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// Misnamed is a resource beside GPUs that a pod asks, that no node of the cluster has, and whose
// name is nearly one that nodes do offer. Who injects such a request (a cloud's webhook, an
// operator) may be at fault as well as who announces it, so no change of the request is made.
type Misnamed struct {
	Resource, Near corev1.ResourceName
	On             string // a node that offers what is near
	Others         int    // how many more the pod asks that no node has
}

// MisnamedResource looks for one among what the pod asks; nil where there is none.
func (c *Case) MisnamedResource() *Misnamed {
	if c.Unborn || c.Claims != nil || len(c.Verdict.Feasible()) > 0 {
		return nil
	}
	var m *Misnamed
	others := 0
	for _, name := range view.SortedNames(c.Wants) {
		if !strings.Contains(string(name), "/") || strings.HasPrefix(string(name), "nvidia.com/") || stack.Maker(name) != "" || c.anyHas(name) {
			continue
		}
		others++
		if m == nil {
			if near, on := c.nearly(name); near != "" {
				m = &Misnamed{Resource: name, Near: near, On: on}
			}
		}
	}
	if m != nil {
		m.Others = others - 1
	}
	return m
}

// anyHas says whether a node has ever had the resource announced.
func (c *Case) anyHas(name corev1.ResourceName) bool {
	return slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool {
		_, has := n.Status.Capacity[name]
		return has
	})
}

// nearly is a resource of the same domain that a node offers, one of whose names begins with the
// other.
func (c *Case) nearly(name corev1.ResourceName) (near corev1.ResourceName, on string) {
	domain, _, _ := strings.Cut(string(name), "/")
	for _, n := range c.Cluster.SortedNodes() {
		for _, other := range view.SortedNames(n.Status.Allocatable) {
			if q := n.Status.Allocatable[other]; q.IsZero() || !strings.HasPrefix(string(other), domain+"/") {
				continue
			}
			if strings.HasPrefix(string(other), string(name)) || strings.HasPrefix(string(name), string(other)) {
				return other, n.Name
			}
		}
	}
	return "", ""
}

// misnamed has no cause of its own in the catalogue, and yet it is settled: no node can ever take
// the pod.
var misnamed = PodRule{ID: diagnosis.Unknown, Tell: func(c *Case) *finding {
	m := c.MisnamedResource()
	if m == nil {
		return nil
	}
	c.entitle(diagnosis.Unknown, fmt.Sprintf("no node offers %s", m.Resource))
	says := fmt.Sprintf("no node offers %s, which it asks (nearest: %s)", m.Resource, m.Near)
	if m.Others > 0 {
		says += ", nor others that it asks"
	}
	name := string(m.Resource)
	return &finding{diagnosis.Proven, says, []diagnosis.Evidence{
		diagnosis.Fact(c.podRef(), "asks "+name, c.itAsks(m.Resource)...),
		diagnosis.Fact("Node/"+m.On, fmt.Sprintf("offers %s, and no node %s", m.Near, name), diagnosis.That(diagnosis.Allocatable, string(m.Near), diagnosis.IsNot, "0"), diagnosis.That(diagnosis.Allocatable, name, diagnosis.Is, "0").Of("Node/*")),
	}}
}}
