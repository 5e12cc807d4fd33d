package changes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// assistants is how Tekton labels the pod by which it keeps the tasks of a run, and their volume, on one node
// (tektoncd/pipeline pkg/reconciler/pipelinerun/affinity_assistant.go, pkg/workspace).
const (
	assistants = "affinity-assistant"
	component  = "app.kubernetes.io/component"
	instance   = "app.kubernetes.io/instance"
)

// moveAssistant is for a task that Tekton keeps near the assistant of its run: the rule is Tekton's own, which gives it
// to every pod of the run, and the assistant was placed before it was known what the tasks ask for.
func moveAssistant(c *Bench, unmet []int) (edit.Change, bool) {
	for _, i := range unmet {
		t := c.Pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]
		if t.LabelSelector == nil || t.LabelSelector.MatchLabels[component] != assistants {
			continue
		}
		name := t.LabelSelector.MatchLabels[instance]
		for _, p := range c.Cluster.State.Pods {
			if p.Namespace == c.Pod.Namespace && p.Labels[component] == assistants && p.Labels[instance] == name && p.Spec.NodeName != "" && !view.Ended(p) {
				return c.Once(fmt.Sprintf("have Tekton's affinity assistant %s leave %s: the tasks of its run go where it is", p.Name, p.Spec.NodeName), func(title string) edit.Change { return offNode(p, title) }), true
			}
		}
	}
	return edit.Change{}, false
}

// offNode closes the assistant's node until the task has begun elsewhere.
func offNode(p *corev1.Pod, title string) edit.Change {
	ch := edit.LookAt(diagnosis.PodAffinityConflict, title, "where the assistant comes to its scheduler decides when it is made again, by what it asks for itself",
		"kubectl get nodes  # is there a node with room for the task, and may the volume be there?",
		"kubectl cordon "+p.Spec.NodeName,
		fmt.Sprintf("kubectl -n %s delete pod %s  # its StatefulSet makes it again; the volume follows once no pod of the run has it", p.Namespace, p.Name),
		fmt.Sprintf("kubectl -n %s get pods -o wide -w", p.Namespace),
		"kubectl uncordon "+p.Spec.NodeName+"  # once the task runs",
		"# or keep no run together (Tekton's feature-flags, coschedule: disabled), or ask for less in the task, and start the run again")
	ch.Minutes, ch.Risk, ch.Drained = 5, diagnosis.LowRisk, []*corev1.Pod{p}
	return ch
}
