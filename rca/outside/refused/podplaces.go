package refused

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/view"
)

// fullOfPods are the words of schedulers for a node that takes no pod more, whatever it asks for: Volcano's predicates, and
// NodeResourcesFit of those that build on kube-scheduler.
var fullOfPods = []string{"pod number exceeded", "Too many pods"}

// havePlace is for the pod whose scheduler says that a node has as many pods as it may, and nothing else keeps the pod from that
// node: one of them goes, or its kubelet takes more. There is nothing to do where it says something else, or no such node is seen.
func havePlace(c *edit.Workload, by string, w queues.Word, look string) []edit.Change {
	if !slices.ContainsFunc(fullOfPods, func(part string) bool { return strings.Contains(w.Message(), part) }) {
		return nil
	}
	n := fullNode(c)
	if n == nil {
		return nil
	}
	list := "kubectl get pods -A --field-selector spec.nodeName=" + n.Name + "  # who is there; a pod that has ended holds no place"
	free := edit.LookAt(diagnosis.SchedulerRefused, "free a pod's place on "+n.Name+", which has as many pods as it may", by+" decides by its own rules, which are not run here", list)
	free.Risk = diagnosis.MediumRisk
	if p := lowest(c, n); p != nil {
		free.Title += fmt.Sprintf(": have %s/%s leave, of lower priority", p.Namespace, p.Name)
		free.Drained = []*corev1.Pod{p}
		free.Commands = append(free.Commands, fmt.Sprintf("kubectl -n %s delete pod %s  # who makes it again has it wait behind; or scale that down", p.Namespace, p.Name))
	} else {
		free.Title += ": somebody there has to end, or be stopped"
		free.StopsUnknown = true
	}
	free.Commands = append(free.Commands, look)
	more := edit.LookAt(diagnosis.SchedulerRefused, "let "+n.Name+" take more pods than it has: raise maxPods of its kubelet", "the kubelet's settings are in no object",
		"kubectl get nodes -o custom-columns=NAME:.metadata.name,PODS:.status.allocatable.pods",
		"# maxPods in the kubelet's configuration on "+n.Name+" (of a managed cluster: the node group's), then restart that kubelet; its pods run on. The range of pod addresses of the node has to hold as many")
	more.Risk = diagnosis.LowRisk
	return []edit.Change{free, more}
}

// fullNode is one that takes no pod more, and from which nothing else keeps the pod; nil for none.
func fullNode(c *edit.Workload) *view.Node {
	for _, j := range c.Judged {
		n := c.Node(j.Name)
		if n == nil || len(j.Blockers) == 0 || slices.ContainsFunc(j.Blockers, func(b diagnosis.Blocker) bool { return b.Reason != "Too many pods" }) {
			continue
		}
		return n
	}
	return nil
}

// lowest is a pod there of the lowest priority, and lower than the waiting one's: of those that its own scheduler has placed
// before others, and none that a DaemonSet, or the node itself, makes again there.
func lowest(c *edit.Workload, n *view.Node) *corev1.Pod {
	var out *corev1.Pod
	own := func(p *corev1.Pod) bool { return p.Spec.SchedulerName == c.Pod.Spec.SchedulerName }
	for _, p := range n.Pods {
		by := metav1.GetControllerOfNoCopy(p)
		if by != nil && (by.Kind == "DaemonSet" || by.Kind == "Node") || p.DeletionTimestamp != nil || view.Ended(p) || corev1helpers.PodPriority(p) >= corev1helpers.PodPriority(c.Pod) {
			continue
		}
		if out == nil || own(p) && !own(out) || own(p) == own(out) && corev1helpers.PodPriority(p) < corev1helpers.PodPriority(out) {
			out = p
		}
	}
	return out
}
