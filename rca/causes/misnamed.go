package causes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Misnamed is a resource beside GPUs that a pod asks and that no node of the cluster has: its name is
// nearly one that nodes do offer, or nobody announces it. Who injects such a request (a cloud's webhook, an
// operator) may be at fault as well as who announces it, so no change of the request is made.
type Misnamed struct {
	Resource, Near corev1.ResourceName // Near is empty where no node offers what is nearly named so
	On             string              // a node that offers what is near
	Others         int                 // how many more the pod asks that no node has
}

// MisnamedResource looks for one among what the pod asks; nil where there is none.
func (c *Case) MisnamedResource() *Misnamed {
	if c.Unborn || c.Claims != nil || len(c.Verdict.Feasible()) > 0 {
		return nil
	}
	var m *Misnamed
	var first corev1.ResourceName
	others := 0
	for _, name := range view.SortedNames(c.Wants) {
		if q := c.Wants[name]; q.IsZero() || !strings.Contains(string(name), "/") || anyHas(c, name) || knownOfNVIDIA(name) || madeSomewhere(c, name) {
			continue
		}
		near, on := nearly(c, name)
		if others++; others == 1 {
			first = name
		}
		if m == nil && near != "" {
			m = &Misnamed{Resource: name, Near: near, On: on}
		}
	}
	if g := c.Growth(); m == nil && others > 0 && len(g.Pools)+len(g.Groups) == 0 && g.Said == "" { // else a node that has it may come
		m = &Misnamed{Resource: first}
	}
	if m != nil {
		m.Others = others - 1
	}
	return m
}

// OfMachine says whether the pod is a virtual machine of KubeVirt's, which is given cards by names of their own.
func OfMachine(c *Case) bool { return c.Pod.Labels["kubevirt.io"] == "virt-launcher" }

// anyHas says whether a node has ever had the resource announced.
func anyHas(c *Case, name corev1.ResourceName) bool {
	return slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool {
		_, has := n.Status.Capacity[name]
		return has
	})
}

const nvidiaDomain = "nvidia.com/"

// formerNames are of a resource before it had its own (Kubernetes before v1.11 counted GPUs itself).
var formerNames = map[corev1.ResourceName]corev1.ResourceName{"alpha.kubernetes.io/nvidia-gpu": view.WholeGPU}

// knownOfNVIDIA says whether a resource is one of NVIDIA's that is told of nodes, or stands on none by design.
func knownOfNVIDIA(name corev1.ResourceName) bool {
	return view.IsGPU(name) || slices.Contains(whatif.OfHAMi, name)
}

// madeSomewhere says whether a node has, or may have, a GPU of the maker of a resource: why it offers none is
// told of the node.
func madeSomewhere(c *Case, name corev1.ResourceName) bool {
	return slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool {
		return makers.OtherName(n, name) != "" || stack.Of(c.Cluster).OfMaker(n, name) != nil
	})
}

// nearly is a resource of the same domain that a node offers, one of whose names begins with the
// other, or the one that a former name stands for.
func nearly(c *Case, name corev1.ResourceName) (near corev1.ResourceName, on string) {
	domain, _, _ := strings.Cut(string(name), "/")
	former := formerNames[name]
	for _, n := range c.Cluster.SortedNodes() {
		for _, other := range view.SortedNames(n.Status.Allocatable) {
			if q := n.Status.Allocatable[other]; q.IsZero() || !strings.HasPrefix(string(other), domain+"/") && other != former {
				continue
			}
			if other == former || strings.HasPrefix(string(other), string(name)) || strings.HasPrefix(string(name), string(other)) {
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
	name := string(m.Resource)
	says := "no node offers " + name + ", which it asks"
	if m.Near != "" {
		says += fmt.Sprintf(" (nearest: %s)", m.Near)
	}
	if m.Others > 0 {
		says += ", nor others that it asks"
	}
	none := diagnosis.That(diagnosis.Allocatable, name, diagnosis.Is, "0").Of("Node/*")
	if m.Near == "" {
		f := &finding{diagnosis.Proven, says + ": nothing has ever announced it", []diagnosis.Evidence{diagnosis.Fact(c.podRef(), "asks "+name+", which no node offers", append(c.itAsks(m.Resource), none)...)}}
		if others := makers.OfferedIn(c.Cluster, m.Resource); len(others) > 0 && makers.Of(m.Resource) != nil {
			f.Says += "; what nodes have is " + strings.Trim(fmt.Sprint(others), "[]")
			f.Evidence = append(f.Evidence, allByOtherNames(c, m.Resource)...)
		}
		if a := AnnouncerOf(c, m.Resource); a != nil {
			f.Says, f.Evidence = f.Says+"; "+a.Says(), append(f.Evidence, a.evidence...)
		}
		return f
	}
	return &finding{diagnosis.Proven, says, []diagnosis.Evidence{
		diagnosis.Fact(c.podRef(), "asks "+name, c.itAsks(m.Resource)...),
		diagnosis.Fact("Node/"+m.On, fmt.Sprintf("offers %s, and no node %s", m.Near, name), diagnosis.That(diagnosis.Allocatable, string(m.Near), diagnosis.IsNot, "0"), none),
	}}
}}
