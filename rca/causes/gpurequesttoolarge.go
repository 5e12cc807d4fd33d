package causes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/view"
)

// gpuRequestTooLarge: the node has fewer GPUs than one pod asks for, held or not.
var gpuRequestTooLarge = Rule{ID: diagnosis.GPURequestTooLarge, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	a, ok := b.Whole()
	has := b.Capacity
	if !ok || has == 0 || has >= a.Count {
		return nil
	}
	fact := fmt.Sprintf("capacity %s=%d, one pod asks for %d", a.Resource, has, a.Count)
	f := &finding{diagnosis.Proven, "has fewer GPUs than one pod asks for", []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fact,
		append(c.itAsks(a.Resource), diagnosis.That(diagnosis.Capacity, string(a.Resource), diagnosis.Is, strconv.FormatInt(has, 10)))...)}}
	if g := admission.GivenBy(c.Cluster.State.LimitRanges, c.Pod, a.Resource); g != nil {
		f.Says += ", because " + g.Says()
		f.Evidence = append(f.Evidence, g.Tell(c.Pod)...)
	}
	return f
}}

// noGPUAnywhere: the same of nodes that have none, where no node of the cluster has any, and of
// none it is open.
var noGPUAnywhere = Rule{ID: diagnosis.GPURequestTooLarge, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	others := len(makers.OfferedIn(c.Cluster, b.scarce)) > 0
	if !b.asked || b.Ask.Profile != "" && !others || c.Cluster.HasGPUs() || stack.Of(c.Cluster).Unlooked() {
		return nil
	}
	if f := byOtherNames(n, b.scarce); f != nil {
		f.Certainty = diagnosis.Likely
		return f
	}
	says := "no node of the cluster has a GPU"
	switch {
	case others:
		says = "no node of the cluster offers " + string(b.scarce)
	case !lookedAll(c):
		says = "nothing says that any node of the cluster has a GPU"
	}
	return &finding{diagnosis.Likely, says, []diagnosis.Evidence{n.NoGPU(b.scarce)}}
}}

// byOtherNames tells of a node that has devices by other names than the one that it lacks; nil for none.
func byOtherNames(n *view.Node, lacks corev1.ResourceName) *finding {
	var parts []string
	claims := []diagnosis.Claim{diagnosis.That(diagnosis.Capacity, string(lacks), diagnosis.Is, "0")}
	for _, name := range makers.Offered(n, lacks) {
		q := n.Status.Capacity[name]
		parts = append(parts, q.String()+" "+string(name))
		claims = append(claims, diagnosis.That(diagnosis.Capacity, string(name), diagnosis.Is, q.String()))
	}
	if len(parts) == 0 {
		return nil
	}
	fact := "has " + strings.Join(parts, ", ") + ", and no " + string(lacks)
	return &finding{diagnosis.Proven, fact, []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fact, claims...)}}
}

// allByOtherNames shows each of those names on the first node that has it.
func allByOtherNames(c *Case, lacks corev1.ResourceName) []diagnosis.Evidence {
	var out []diagnosis.Evidence
	shown := map[corev1.ResourceName]bool{}
	for _, n := range c.Cluster.SortedNodes() {
		has := makers.Offered(n, lacks)
		if slices.ContainsFunc(has, func(name corev1.ResourceName) bool { return !shown[name] }) {
			out = append(out, byOtherNames(n, lacks).Evidence...)
		}
		for _, name := range has {
			shown[name] = true
		}
	}
	return out
}

// lookedAll says whether something has looked for GPUs on all nodes.
func lookedAll(c *Case) bool {
	if c.looked == nil {
		c.looked = new(!slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool { return !stack.Looked(n) }))
	}
	return *c.looked
}
