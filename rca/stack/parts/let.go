package parts

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Way is what lets a DaemonSet onto a node that it misses.
type Way struct {
	Titles, Commands []string
	// Untold: which labels its affinity should ask for is not known.
	Untold bool
	// Edits: its template is changed for it, so its pods on other nodes are made again.
	Edits bool
}

// Title is the way in one line.
func (w Way) Title() string { return strings.Join(w.Titles, "; ") }

// Let is the way: labels, an affinity, tolerations. Sign is a label by which its affinity may take the node where that
// is "true"; tolerate the command for tolerations, nil: what the DaemonSet is made from is changed.
func (d *Set) Let(n *view.Node, m Misses, sign string, tolerate func([]corev1.Taint) string) Way {
	var w Way
	name := d.Namespace + "/" + d.Name
	label := func(is string) {
		w.Titles = append(w.Titles, "label "+n.Name+" "+is)
		w.Commands = append(w.Commands, "kubectl label node "+n.Name+" "+is+" --overwrite")
	}
	for _, is := range m.Labels {
		if title, command := d.selectParts(n, is); title != "" {
			w.Titles, w.Commands = append(w.Titles, title), append(w.Commands, command)
			continue
		}
		label(is)
	}
	switch {
	case !m.Affinity:
	case sign != "" && d.Accepts(n, sign, "true"):
		label(sign + "=true")
	default:
		w.Titles = append(w.Titles, "let the affinity of "+name+" accept "+n.Name)
		w.Commands = append(w.Commands, d.edit()+"  # spec.template.spec.affinity: "+d.Wants())
		w.Untold, w.Edits = true, true
	}
	if len(m.Taints) > 0 {
		names := make([]string, len(m.Taints))
		for i, t := range m.Taints {
			names[i] = t.ToString()
		}
		if tolerate == nil {
			tolerate = d.tolerate
		}
		w.Titles = append(w.Titles, "have "+name+" tolerate "+strings.Join(names, ", "))
		w.Commands, w.Edits = append(w.Commands, tolerate(m.Taints)), true
	}
	return w
}

// Tolerate is the command for a DaemonSet that tolerates some already: a list replaces the one before.
func Tolerate(namespace, name string, has []corev1.Toleration, taints []corev1.Taint) string {
	return fmt.Sprintf(`kubectl -n %s patch daemonset %s --type=merge -p '{"spec":{"template":{"spec":{"tolerations":%s}}}}'`, namespace, name, Tolerations(has, taints))
}

// Tolerations are those of before and one for each taint, as JSON.
func Tolerations(has []corev1.Toleration, taints []corev1.Taint) []byte {
	list := slices.Clone(has)
	for _, t := range taints {
		one := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
		if t.Value == "" {
			one.Operator = corev1.TolerationOpExists
		}
		list = append(list, one)
	}
	return diagnosis.MustJSON(list)
}

// Rolled are the pods that stop, node by node, when the DaemonSet's template is changed; none where it waits for who
// deletes them.
func (d *Set) Rolled(w *view.Cluster) []*corev1.Pod {
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(w.State.Pods), func(p *corev1.Pod) bool {
		return p.Spec.NodeName == "" || view.Ended(p) || p.DeletionTimestamp != nil || !d.Made(p)
	})
}

// Made says whether the DaemonSet made a pod.
func (d *Set) Made(p *corev1.Pod) bool {
	by := metav1.GetControllerOfNoCopy(p)
	return by != nil && by.Kind == "DaemonSet" && by.Name == d.Name && p.Namespace == d.Namespace
}

// On is its pod on a node; nil for none.
func (d *Set) On(n *view.Node) *corev1.Pod {
	if i := slices.IndexFunc(n.Pods, d.Made); i >= 0 {
		return n.Pods[i]
	}
	return nil
}

// Have is the verb of so many.
func Have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}
