package scaling

import (
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Fit says whether a pool's machines could be for a pod.
type Fit int

// The fits. Maybe: nothing that the pool says speaks against it, nothing for GPUs.
const (
	No Fit = iota
	Maybe
	Yes
)

// gpuResource is what clouds' instance types are known to have (all of the whole GPUs,
// whatever the device plugin makes of them).
const gpuResource = "nvidia.com/gpu"

// Suits says whether the pool makes machines for a pod that asks for GPUs: by its taints,
// labels and requirements, as Karpenter compares them.
func (p *Pool) Suits(pod *corev1.Pod) Fit {
	if !p.Takes(pod) {
		return No
	}
	return p.gpus()
}

// OfGPUs says whether the pool is sure to make machines with NVIDIA's GPUs, for whatever pod.
func (p *Pool) OfGPUs() bool { return p.gpus() == Yes }

func (p *Pool) gpus() Fit {
	_, limited := p.Limits[gpuResource]
	used := p.Used[gpuResource]
	if limited || used.Sign() > 0 || slices.ContainsFunc(p.Taints, func(t corev1.Taint) bool { return t.Key == gpuResource }) {
		return Yes
	}
	return ofGPUs(p.Requirements)
}

// Takes says whether taints, labels and requirements of the pool let the pod onto its machines,
// whatever those have.
func (p *Pool) Takes(pod *corev1.Pod) bool {
	return Tolerates(pod, p.Taints) && p.Selected(pod)
}

// Selected says whether what the pod selects by leaves machines of the pool, whatever their taints. A label
// that the pool requires to exist is given to each machine with the value that the pod asks for (Karpenter's
// documentation of NodePools, user-defined labels).
func (p *Pool) Selected(pod *corev1.Pod) bool { return admits(pod, p.Labels, p.Requirements) }

// Speaks says whether the pool gives its machines that label, or requires something of it.
func (p *Pool) Speaks(key string) bool {
	_, set := p.Labels[key]
	return set || slices.ContainsFunc(p.Requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == key })
}

// Suits says the same of a machine that is on its way.
func (c *Claim) Suits(pod *corev1.Pod) bool {
	return Tolerates(pod, c.Taints) && admits(pod, c.Labels, c.Requirements)
}

// Tolerates says whether the pod tolerates taints that a machine is made with: those that the
// cluster's own controllers set and take away with its state are not.
func Tolerates(pod *corev1.Pod, taints []corev1.Taint) bool {
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taints[i].Key, "node.kubernetes.io/") && !corev1helpers.TolerationsTolerateTaint(logr.Discard(), pod.Spec.Tolerations, &taints[i], true) {
			return false
		}
	}
	return true
}

// admits says whether labels and requirements leave a node that the pod's selector and one
// term of its affinity accept.
func admits(pod *corev1.Pod, labels map[string]string, of []corev1.NodeSelectorRequirement) bool {
	for key, value := range pod.Spec.NodeSelector {
		if !meets(corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}, labels, of) {
			return false
		}
	}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	return slices.ContainsFunc(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchExpressions, func(want corev1.NodeSelectorRequirement) bool { return !meets(want, labels, of) })
	})
}

// meets compares the values that both want of one label. Of a label that the pool does not
// speak of, only what the cloud sets is left open.
func meets(want corev1.NodeSelectorRequirement, labels map[string]string, of []corev1.NodeSelectorRequirement) bool {
	spoken, demanded := false, false // demanded: each of the pool's machines has the label
	for _, has := range of {
		if has.Key != want.Key {
			continue
		}
		spoken = true
		demanded = demanded || has.Operator != corev1.NodeSelectorOpNotIn && has.Operator != corev1.NodeSelectorOpDoesNotExist
		switch {
		case has.Operator == corev1.NodeSelectorOpDoesNotExist && (want.Operator == corev1.NodeSelectorOpIn || want.Operator == corev1.NodeSelectorOpExists):
			return false
		case want.Operator == corev1.NodeSelectorOpIn && has.Operator == corev1.NodeSelectorOpIn && !slices.ContainsFunc(want.Values, func(v string) bool { return slices.Contains(has.Values, v) }):
			return false
		case want.Operator == corev1.NodeSelectorOpIn && has.Operator == corev1.NodeSelectorOpNotIn && !slices.ContainsFunc(want.Values, func(v string) bool { return !slices.Contains(has.Values, v) }):
			return false
		case want.Operator == corev1.NodeSelectorOpNotIn && has.Operator == corev1.NodeSelectorOpIn && !slices.ContainsFunc(has.Values, func(v string) bool { return !slices.Contains(want.Values, v) }):
			return false
		}
	}
	value, set := labels[want.Key]
	switch want.Operator {
	case corev1.NodeSelectorOpIn:
		return set && slices.Contains(want.Values, value) || !set && (spoken || ofTheCloud(want.Key))
	case corev1.NodeSelectorOpNotIn:
		return !set || !slices.Contains(want.Values, value)
	case corev1.NodeSelectorOpExists:
		return set || spoken || ofTheCloud(want.Key)
	case corev1.NodeSelectorOpDoesNotExist:
		return !set && !demanded
	}
	return true // numbers are not compared here
}

// ofTheCloud says whether Karpenter and its providers know values of a label by themselves.
func ofTheCloud(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasPrefix(domain, "karpenter.") || strings.HasPrefix(domain, "topology.") ||
		slices.Contains([]string{"kubernetes.io", "node.kubernetes.io", "kubernetes.azure.com", "eks.amazonaws.com"}, domain)
}

// AsksKarpenter says whether the pod wants a label of a node that Karpenter alone writes.
func AsksKarpenter(pod *corev1.Pod) bool {
	its := func(key string) bool { return strings.HasPrefix(key, "karpenter.") }
	for key := range pod.Spec.NodeSelector {
		if its(key) {
			return true
		}
	}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return its(r.Key) && r.Operator != corev1.NodeSelectorOpNotIn && r.Operator != corev1.NodeSelectorOpDoesNotExist
		})
	})
}

// heard are the labels of which Karpenter knows all values that there are (pkg/apis/v1/labels.go), and
// those of Kubernetes' own that nodes have.
var heard = map[string][]string{
	"karpenter.sh/capacity-type": {"on-demand", "spot", "reserved"},
	corev1.LabelArchStable:       {"amd64", "arm64", "s390x", "ppc64le"},
	corev1.LabelOSStable:         {"linux", "windows"},
}

// Heard are all values that a label can have; none where there is no such list.
func Heard(key string) []string { return heard[key] }

// Unheard is the requirement of the pool that no machine can meet, for none has such a value; nil for none.
func (p *Pool) Unheard() *corev1.NodeSelectorRequirement {
	for i := range p.Requirements {
		r := &p.Requirements[i]
		if known := heard[r.Key]; len(known) > 0 && len(r.Values) > 0 && r.Operator == corev1.NodeSelectorOpIn && !slices.ContainsFunc(r.Values, func(v string) bool { return slices.Contains(known, v) }) {
			return r
		}
	}
	return nil
}

// HoldsFresh says whether a node has as much as is asked, were nobody on it.
func HoldsFresh(n *corev1.Node, wants corev1.ResourceList) bool {
	for name, asked := range wants {
		if has := n.Status.Allocatable[name]; has.Cmp(asked) < 0 {
			return false
		}
	}
	return true
}
