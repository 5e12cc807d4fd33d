package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

const (
	vendorPrefix = "nvidia.com/"
	labelPresent = "nvidia.com/gpu.present" // NVIDIA's feature discovery
)

// gpuNode says whether a node has GPUs, also while its device plugin is down and it
// advertises 0 of them.
func gpuNode(n *corev1.Node) bool {
	if n.Labels[labelPresent] == "true" {
		return true
	}
	for name := range n.Status.Capacity {
		if strings.HasPrefix(string(name), vendorPrefix) {
			return true
		}
	}
	return false
}

// readyOf is a node's Ready condition; nil when its kubelet has never reported.
func readyOf(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

// mark is what the annotation on a node says: the operation that works on it, or why
// it cannot be told.
func mark(n *corev1.Node) (*diagnosis.Operation, error) {
	if len(n.Annotations) == 0 {
		return nil, nil
	}
	return diagnosis.OperationOn(n)
}

// pool is how the GPU nodes are: those in use and those out of it.
type pool struct {
	size    int
	healthy []*corev1.Node
	out     map[string]string // node → why
	ours    int               // of those, by plans of ours: worked on, or parked
	offers  map[corev1.ResourceName][]*corev1.Node
}

// offering are the nodes in use that offer a resource, looked up once.
func (p *pool) offering(name corev1.ResourceName) []*corev1.Node {
	list, known := p.offers[name]
	if !known {
		for _, n := range p.healthy {
			if quantity := n.Status.Allocatable[name]; quantity.Sign() > 0 {
				list = append(list, n)
			}
		}
		p.offers[name] = list
	}
	return list
}

// survey looks at every GPU node once. A node that a plan under way has still to
// cordon counts as out of use already.
func (q *question) survey() *pool {
	if q.pool != nil {
		return q.pool
	}
	coming := map[string]string{}
	for r := range q.others() {
		if !r.Status.Phase.Begun() {
			continue
		}
		for name := range takenBy(r) {
			coming[name] = "worked on by plan " + Called(r)
		}
	}
	p := &pool{out: map[string]string{}, offers: map[corev1.ResourceName][]*corev1.Node{}}
	for _, n := range q.view.Nodes {
		if !gpuNode(n) && !q.taken[n.Name] {
			continue
		}
		p.size++
		why := outOfUse(n)
		if why == "" {
			why = coming[n.Name]
		}
		if why == "" {
			p.healthy = append(p.healthy, n)
		} else {
			p.out[n.Name] = why
		}
		if op, err := mark(n); err != nil || op != nil || coming[n.Name] != "" {
			p.ours++
		}
	}
	q.pool = p
	return p
}

// outOfUse says why no pod can come to a node; empty when it can.
func outOfUse(n *corev1.Node) string {
	op, err := mark(n)
	ready := readyOf(n)
	switch {
	case err != nil:
		return "marked"
	case op != nil && op.Parked != "":
		return "parked"
	case op != nil && op.Quarantined != "":
		return "quarantined"
	case op != nil:
		return "worked on"
	case ready == nil || ready.Status != corev1.ConditionTrue:
		return "not Ready"
	case n.Spec.Unschedulable:
		return "cordoned"
	}
	return ""
}

// poolUnavailable holds the GPU nodes that are out of use, for whatever reason, and
// the one that the plan would take to the limit. A plan works on one of its nodes
// after the other; one that is out of use anyway makes nothing worse. One node may be
// worked on as long as those that others closed are within the limit by themselves: in
// a pool of eight a single cordon would stop everything else.
func poolUnavailable(q *question) Verdict {
	p := q.survey()
	i := slices.IndexFunc(p.healthy, func(n *corev1.Node) bool { return q.taken[n.Name] })
	if i < 0 {
		return Verdict{}
	}
	most := max(1, p.size*q.limits.PoolUnavailablePercent/100)
	if len(p.out)+1 <= most || p.ours == 0 && len(p.out) <= most {
		return Verdict{}
	}
	return q.wait(time.Time{}, "%d of %d GPU nodes are out of use (%s), with %s it would be %d, the limit is %d (%d %%, at least 1): bring one back, or raise poolUnavailablePercent in ConfigMap %s",
		len(p.out), p.size, p.reasons(), p.healthy[i].Name, len(p.out)+1, most, q.limits.PoolUnavailablePercent, ConfigMap)
}

func (p *pool) reasons() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.out)) {
		parts = append(parts, name+" "+p.out[name])
	}
	return few(parts)
}

// lastHealthy keeps the last node in use that offers what another incident waits
// for: once it is re-made it may never offer that again. A node that is closed for good
// offers nothing to the plan's own incident either.
func lastHealthy(q *question) Verdict {
	p := q.survey()
	if p.size < 2 {
		return Verdict{}
	}
	closes := slices.ContainsFunc(q.plan.Spec.Actions, func(a diagnosis.Action) bool { return a.Verb == diagnosis.VerbCordon })
	waiting := map[corev1.ResourceName]string{} // resource → the first incident that waits for it
	for incident, names := range q.view.Wanted {
		for _, name := range names {
			if first, ok := waiting[name]; (closes || incident != q.plan.Spec.Incident) && (!ok || incident < first) {
				waiting[name] = incident
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		last, stays := "", false
		for _, n := range p.offering(name) {
			if q.taken[n.Name] {
				last = n.Name
				continue
			}
			stays = true
			break
		}
		if last != "" && !stays {
			return refuse(v1alpha1.Refused, "%s is the last node in use that offers %s, which incident %s waits for: bring another back first, or choose another fix", last, name, waiting[name])
		}
	}
	return Verdict{}
}

// few lists at most three, and says how many more there are.
func few(parts []string) string {
	const most = 3
	if len(parts) <= most {
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(parts[:most], ", "), len(parts)-most)
}
