package mend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// Relabel puts back what a node has lost: a pod that selects by the labels which the waiting one misses runs there, and neither
// the scheduler nor the kubelet (pkg/kubelet/lifecycle/predicate.go) would have let it without them. Nothing where no pod shows
// that, and for labels that discovery writes: those say what it finds. Selecting otherwise is left, and does without what was meant.
func Relabel(n *view.Node, missed []terms.MissedLabel, otherwise []edit.Change) []edit.Change {
	shows := selectsThere(n, missed)
	if shows == nil {
		return otherwise
	}
	labels, texts := map[string]string{}, make([]string, len(missed))
	for i, m := range missed {
		labels[m.Key], texts[i] = m.Values[0], m.Key+"="+m.Values[0]
	}
	out := []edit.Change{{Kind: diagnosis.Manual, Cause: diagnosis.NodeSelectorMismatch, Manual: true, Minutes: 1, Risk: diagnosis.LowRisk,
		Title: fmt.Sprintf("put label %s back on %s, which had it when %s/%s, that selects it too, came there", strings.Join(texts, ", "), n.Name, shows.Namespace, shows.Name),
		Node: func(o *corev1.Node) {
			o.Labels = maps.Clone(o.Labels)
			if o.Labels == nil {
				o.Labels = map[string]string{}
			}
			maps.Copy(o.Labels, labels)
		},
		Steps:    []string{"see first who took it off, and why: the node's creation, a node pool's or a NodePool's labels, or a person"},
		Commands: []string{"kubectl get node " + n.Name + " --show-managed-fields -o yaml  # who writes its labels", "kubectl label node " + n.Name + " " + strings.Join(texts, " ")}}}
	for _, ch := range otherwise {
		ch.Settles, ch.Risk = true, ch.Risk.With(diagnosis.MediumRisk) // it was meant
		out = append(out, ch)
	}
	return out
}

// discovered says whether node feature discovery, GPU feature discovery or the kubelet writes a label.
func discovered(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "nvidia.com" || domain == "feature.node.kubernetes.io" || domain == "kubernetes.io" || domain == "node.kubernetes.io" || domain == "topology.kubernetes.io"
}

// selectsThere is the first pod that runs on the node and selects by all that the waiting one misses, each a label of one value; nil
// for none. DaemonSets' are no witnesses: their controller takes them away with the label, and those of static pods were never
// judged.
func selectsThere(n *view.Node, missed []terms.MissedLabel) *corev1.Pod {
	if len(missed) == 0 || slices.ContainsFunc(missed, func(m terms.MissedLabel) bool {
		return m.ByName || len(m.Values) != 1 || m.Operator != "" && m.Operator != corev1.NodeSelectorOpIn || discovered(m.Key)
	}) {
		return nil
	}
	at := slices.IndexFunc(n.Pods, func(p *corev1.Pod) bool {
		by := metav1.GetControllerOfNoCopy(p)
		return p.Status.Phase == corev1.PodRunning && (by == nil || by.Kind != "DaemonSet" && by.Kind != "Node") &&
			!slices.ContainsFunc(missed, func(m terms.MissedLabel) bool {
				value, has := p.Spec.NodeSelector[m.Key]
				return !has || value != m.Values[0]
			})
	})
	if at < 0 {
		return nil
	}
	return n.Pods[at]
}
