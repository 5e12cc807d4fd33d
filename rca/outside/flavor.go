package outside

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// tolerateFlavor is for the pod set that does not tolerate the taints of its flavor: nobody who ends
// gives it room.
func tolerateFlavor(c *edit.Workload, t *queues.Intolerance, look string) edit.Change {
	items := make([]string, len(t.Taints))
	for i, taint := range t.Taints {
		items[i] = toleration(taint)
	}
	ofFlavor := fmt.Sprintf(`kubectl patch resourceflavors.kueue.x-k8s.io %s --type=merge -p '{"spec":{"tolerations":[%s]}}'  # or this: of all that Kueue admits to that flavor`, t.Flavor, strings.Join(items, ","))
	if t.Tolerates {
		ofFlavor = "kubectl edit resourceflavors.kueue.x-k8s.io " + t.Flavor + "  # or this, of all that Kueue admits to that flavor: spec.tolerations"
	}
	return queueChange(diagnosis.Manual, diagnosis.LowRisk, "Kueue admits it", fmt.Sprintf("have pod set %s of %s tolerate %s, which flavor %s has", t.Set, c.WorkloadName(), t.Wants(), t.Flavor),
		look, c.EditObject("tolerations of pod set "+t.Set+templateOf(c.Incident.Workload, t.Set)+": "+strings.Join(items, ", ")), ofFlavor)
}

// patched says whether what lets the pods on the flavor's nodes lets Kueue admit them, too: its template is
// changed for the taints that those carry.
func patched(c *edit.Workload, t *queues.Intolerance) bool {
	return incident.OwnKind(c.Incident.Workload.Kind) && !slices.ContainsFunc(t.Taints, func(taint corev1.Taint) bool {
		return !slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool { return slices.Contains(n.Spec.Taints, taint) })
	})
}

// toleration is the one that a taint wants, as JSON and YAML take it.
func toleration(t corev1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf(`{"key":%q,"operator":"Exists","effect":%q}`, t.Key, t.Effect)
	}
	return fmt.Sprintf(`{"key":%q,"value":%q,"effect":%q}`, t.Key, t.Value, t.Effect)
}

// templateOf is where the template of a pod set stands, where its name does not say so: KubeRay makes the
// pod that submits a RayJob from a template of its own, which is no part of the cluster's.
func templateOf(w incident.Ref, set string) string {
	if kind, _, _ := strings.Cut(w.Kind, "."); kind == "RayJob" && set == "submitter" {
		return " (spec.submitterPodTemplate, a whole template: Ray's default has none)"
	}
	return ""
}

// nameQueue is for what Kueue holds without a queue.
func nameQueue(c *edit.Workload, q *queues.Broken) edit.Change {
	queue, list := "QUEUE", fmt.Sprintf("kubectl -n %s get localqueues.kueue.x-k8s.io", q.Namespace)
	title := "name the queue that is to admit " + c.WorkloadName() + ": label " + incident.QueueLabel
	commands := []string{list}
	switch len(q.Offers) {
	case 0:
		title = "make a LocalQueue in namespace " + q.Namespace + ", and name it in " + c.WorkloadName() + ": label " + incident.QueueLabel
		commands = []string{"kubectl get clusterqueues.kueue.x-k8s.io", list + "  # one named default is for all who name none, from then on"}
	case 1:
		queue = q.Offers[0]
		title += "=" + queue
	}
	if c.Incident.Workload.Kind == "Pod" {
		commands = append(commands, fmt.Sprintf("kubectl -n %s label pod %s %s=%s", c.Pod.Namespace, c.Pod.Name, incident.QueueLabel, queue))
	} else {
		commands = append(commands, c.EditObject("label "+incident.QueueLabel+": "+queue+", of it and of its pods"))
	}
	ch := queueChange(diagnosis.Manual, diagnosis.LowRisk, "Kueue admits it", title, commands...)
	ch.Cause = diagnosis.QueueMisconfigured
	return ch
}
