package outside

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// koordlet is the DaemonSet whose pod reports a node's devices to Koordinator's scheduler (object Device); of a node without a
// report that takes none, whatever the node offers (koordinator pkg/scheduler/plugins/deviceshare).
const koordlet = "koordlet"

// haveAgent has the agent of the scheduler run on the node with GPUs of which the scheduler has no report; nil where it runs on all.
func haveAgent(c *edit.Workload, by string) *edit.Change {
	at := slices.IndexFunc(c.Cluster.State.DaemonSets, func(d *appsv1.DaemonSet) bool { return d.Name == koordlet })
	if at < 0 {
		return nil
	}
	d := c.Cluster.State.DaemonSets[at]
	for _, n := range c.Cluster.SortedNodes() {
		if !n.HasGPUs() || !n.AdvertisesAny() || slices.ContainsFunc(n.Pods, func(p *corev1.Pod) bool { return ofDaemon(p, d) }) {
			continue
		}
		ch := edit.LookAt(diagnosis.SchedulerRefused, fmt.Sprintf("have DaemonSet %s/%s run on %s: without its report %s takes the node for one without devices", d.Namespace, d.Name, n.Name, by), by+" decides by its own rules, which are not run here",
			fmt.Sprintf("kubectl -n %s get pods -o wide | grep %s", d.Namespace, d.Name), "kubectl get devices.scheduling.koordinator.sh "+n.Name)
		if kept := untolerated(d, n); len(kept) > 0 {
			ch.Title += "; it does not tolerate " + strings.Join(texts(kept), ", ")
			ch.Commands = append([]string{tolerateAlso(d, kept)}, ch.Commands...)
		}
		return &ch
	}
	return nil
}

func ofDaemon(p *corev1.Pod, d *appsv1.DaemonSet) bool {
	o := metav1.GetControllerOfNoCopy(p)
	return o != nil && o.Kind == "DaemonSet" && o.Name == d.Name && p.Namespace == d.Namespace
}

// untolerated are the taints that keep a DaemonSet's pods from a node.
func untolerated(d *appsv1.DaemonSet, n *view.Node) []corev1.Taint {
	like := &corev1.Pod{Spec: d.Spec.Template.Spec}
	return slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
		return scaling.Tolerates(like, []corev1.Taint{t})
	})
}

func texts(taints []corev1.Taint) []string {
	out := make([]string, len(taints))
	for i, t := range taints {
		out[i] = taintText(t)
	}
	return out
}

// tolerateAlso is the command that has a DaemonSet tolerate more.
func tolerateAlso(d *appsv1.DaemonSet, taints []corev1.Taint) string {
	var all []corev1.Toleration
	all = append(all, d.Spec.Template.Spec.Tolerations...)
	for _, t := range taints {
		all = append(all, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpExists, Effect: t.Effect})
	}
	return fmt.Sprintf("kubectl -n %s patch daemonset %s --type merge -p '%s'", d.Namespace, d.Name, diagnosis.MustJSON(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"tolerations": all}}}}))
}
