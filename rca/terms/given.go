package terms

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Class is the RuntimeClass that a pod names; nil where it names none, or none that was read.
func Class(w *view.Cluster, p *corev1.Pod) *nodev1.RuntimeClass {
	for _, r := range w.State.RuntimeClasses {
		if p.Spec.RuntimeClassName != nil && r.Name == *p.Spec.RuntimeClassName {
			return r
		}
	}
	return nil
}

// ByClass is the RuntimeClass that gives the pod a label of its selector: the API server adds what
// scheduling.nodeSelector has to every pod that names it (plugin/pkg/admission/runtimeclass). Empty
// for none.
func (c *Labels) ByClass(m MissedLabel) string {
	r := Class(c.Cluster, c.Pod)
	if r == nil || r.Scheduling == nil || !m.InSelector || len(m.Values) != 1 {
		return ""
	}
	if value, has := r.Scheduling.NodeSelector[m.Key]; !has || value != m.Values[0] {
		return ""
	}
	return r.Name
}

// replaced are labels of Kubernetes' own by those that came in their place (reference of well-known
// labels); kubelets write some of the former still.
var replaced = map[string]string{
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// otherNames are the labels of the pod's selector that no node has at all, by the label under which
// nodes have what is asked.
func (c *Labels) otherNames() map[string]string {
	out := map[string]string{}
	for key, value := range c.Pod.Spec.NodeSelector {
		if len(c.Cluster.Column(key).Distinct) > 0 {
			continue // such a label there is: it is the value that differs
		}
		for _, other := range c.likely(key, value) {
			if slices.Contains(c.Cluster.Column(other).Distinct, value) {
				out[key] = other
				break
			}
		}
	}
	return out
}

// likely are labels that may be meant by one that no node has.
func (c *Labels) likely(key, value string) []string {
	var out []string
	for old, now := range replaced {
		switch key {
		case old:
			out = append(out, now)
		case now:
			out = append(out, old)
		}
	}
	spelled := map[string]bool{}
	for _, n := range c.Cluster.SortedNodes() {
		for other, has := range n.Labels {
			if has == value && !spelled[other] && diagnosis.Misspelled(key, other) {
				spelled[other] = true
			}
		}
	}
	return append(out, slices.Sorted(maps.Keys(spelled))...)
}
