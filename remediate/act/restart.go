package act

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
)

// restart evicts a device plugin's pod, to have it made again by its DaemonSet.
type restart struct{ evict }

// restarts says that an eviction is a restart.
func restarts(a diagnosis.Action) bool {
	return a.Verb == diagnosis.VerbEvict && a.Relies[diagnosis.RemadeBy] != ""
}

func (v restart) steps() []journal.Step {
	return append(v.evict.steps(), journal.Step{ID: v.id("registered"), Text: "wait until the device plugin of " + v.Relies["node"] + " has registered its devices again", Within: v.Deadlines.Run, Try: v.registered})
}

// registered says what is missing until another pod of the plugin runs on the node, and
// the node offers what its probe reports; without a report, anything.
func (v restart) registered(ctx context.Context, _ *journal.Entry) (missing string, err error) {
	if v.DryRun {
		return "", nil
	}
	node := v.Relies["node"]
	pods, err := v.Client.CoreV1().Pods(v.Target.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return "", fmt.Errorf("list the pods on %s: %w", node, err)
	}
	if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
		by := metav1.GetControllerOfNoCopy(&p)
		return by != nil && by.Name == v.Relies[diagnosis.RemadeBy] && string(p.UID) != v.Target.UID && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
	}) {
		return fmt.Sprintf("no other pod of daemonset %s runs on %s", v.Relies[diagnosis.RemadeBy], node), nil
	}
	n, err := v.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%w: node %s is gone", plan.ErrStale, node)
	}
	if err != nil {
		return "", fmt.Errorf("read node %s: %w", node, err)
	}
	geo, err := v.geometry(ctx, node)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	return offersLess(n, view.PluginOffers(n, geo)), nil
}

// offersLess names what a node offers less of than it would; empty when nothing. Where
// GPUs are shared it offers more, perhaps under another name.
func offersLess(n *corev1.Node, would corev1.ResourceList) string {
	for _, name := range slices.Sorted(maps.Keys(would)) {
		is, shared, want := n.Status.Allocatable[name], n.Status.Allocatable[name+view.SharedSuffix], would[name]
		if max(is.Value(), shared.Value()) < want.Value() {
			return fmt.Sprintf("node %s offers %d of %s, it has %d", n.Name, is.Value(), name, want.Value())
		}
	}
	for name, q := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), "nvidia.com/") && q.Sign() > 0 {
			return ""
		}
	}
	return "node " + n.Name + " offers no GPU"
}
