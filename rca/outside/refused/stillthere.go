package refused

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// unplaced is for KAI's binder, which gives out no part of a GPU while a pod of its scaling namespace has no node: by such
// pods its node-scale-adjuster asks an autoscaler for machines (KAI-Scheduler, pkg/binder/binding/resourcereservation,
// isScalingUp). One that no machine is for, or that does not go, keeps every part from everybody.
func unplaced(c *edit.Workload, by string, w queues.Word) *edit.Change {
	if !strings.Contains(w.Message(), "cluster is scaling up, could not create reservation pod") {
		return nil
	}
	var waits []*corev1.Pod
	for _, p := range c.Cluster.State.Pods {
		if strings.HasSuffix(p.Namespace, "-scale-adjust") && slices.ContainsFunc(p.Status.Conditions, func(k corev1.PodCondition) bool {
			return k.Type == corev1.PodScheduled && k.Status != corev1.ConditionTrue
		}) {
			waits = append(waits, p)
		}
	}
	if len(waits) == 0 {
		return nil
	}
	slices.SortStableFunc(waits, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	p := waits[0]
	ref, since := p.Namespace+"/"+p.Name, "has waited "+view.Age(c.Cluster.State.Now.Sub(p.CreationTimestamp.Time))+" for a node"
	if p.DeletionTimestamp != nil {
		since = "was deleted " + view.Age(c.Cluster.State.Now.Sub(p.DeletionTimestamp.Time)) + " ago and does not go"
	}
	if len(waits) > 1 {
		since += fmt.Sprintf(", the oldest of %d", len(waits))
	}
	ch := edit.LookAt(diagnosis.SchedulerRefused, fmt.Sprintf("see whether a machine comes for %s, or take it away: it %s, and KAI's binder gives out no part of a GPU as long as such a pod has no node", ref, since), by+" decides by its own rules, which are not run here",
		fmt.Sprintf("kubectl -n %s describe pod %s  # what its scheduler and an autoscaler say of it", p.Namespace, p.Name),
		fmt.Sprintf("kubectl -n %s delete pod %s  # the node-scale-adjuster makes another where one is still needed; --force --grace-period=0 where it does not go", p.Namespace, p.Name))
	ch.Risk = diagnosis.LowRisk
	return &ch
}

// triesWithin is the time within which kube-scheduler's code has said of every pod that it got no node: it tries each again
// after 5 minutes at the latest (podMaxInUnschedulablePodsDuration, pkg/scheduler/backend/queue), and a series of equal Events
// is told again after 30 (client-go, tools/events, refreshTime; Kubernetes 1.37).
const triesWithin = 36 * time.Minute

// tryAgain is for the pod that its scheduler, which is kube-scheduler's code, has not tried for longer than it leaves any,
// though a node that nothing is seen to keep it from has changed since.
func tryAgain(c *edit.Workload, by string, w queues.Word) *edit.Change {
	if !strings.Contains(w.Message(), " nodes are available: ") || c.Queue.Grouped() {
		return nil
	}
	var last time.Time
	for _, e := range c.Cluster.EventsOf("Pod", c.Pod.Namespace, c.Pod.Name) {
		if at := scaling.Seen(e); scaling.Speaker(e) == by && at.After(last) {
			last = at
		}
	}
	quiet := c.Cluster.State.Now.Sub(last)
	if last.IsZero() || quiet < triesWithin {
		return nil
	}
	for _, j := range c.Judged {
		n := c.Node(j.Name)
		if n == nil || len(j.Blockers) > 0 {
			continue
		}
		if now := changed(c, w, n, last); now != "" {
			ch := makeAgain(c, by, fmt.Sprintf("%s has said nothing of it for %s, and %s", by, view.Age(quiet), now))
			return &ch
		}
	}
	return nil
}

// changed is what is otherwise on a node than when the scheduler spoke; empty where nothing is seen to be.
func changed(c *edit.Workload, w queues.Word, n *view.Node, last time.Time) string {
	register, _ := queues.Register(c.Queue)
	switch {
	case w.OfUnregistered() && register != "" && n.Annotations[register] != "":
		return n.Name + ", which it called unregistered, lists its cards"
	case readySince(n, last):
		return n.Name + " has become Ready since"
	}
	return ""
}

// makeAgain has the pod tried by another of its name or owner; one whose deletion ends its Job stays, and its scheduler is
// started again, which tries every pod.
func makeAgain(c *edit.Workload, by, why string) edit.Change {
	ns, name := c.Pod.Namespace, c.Pod.Name
	title, again := "make pod "+name+" again: "+why, fmt.Sprintf("kubectl -n %s delete pod %s  # its owner makes it again; it does not run yet", ns, name)
	log := "kubectl get pods -A -o wide | grep -i " + by + "  # where that does not help, its log: it may be stuck, and started again it tries every pod"
	switch {
	case !view.ComesBack(c.Pod):
		again = fmt.Sprintf("kubectl -n %s get pod %s -o json | jq 'del(.status, .metadata.uid, .metadata.resourceVersion)' | kubectl replace --force -f -", ns, name)
	case len(c.Cluster.State.LostBy([]*corev1.Pod{c.Pod}).Pods) > 0:
		title = "start " + by + " again, which tries every pod: " + why + "; to delete the pod would end its Job"
		again, log = "kubectl get pods -A -o wide | grep -i "+by+"  # its log first: it may be stuck", "kubectl -n NAMESPACE rollout restart deployment NAME  # pods that run stay"
	}
	ch := edit.LookAt(diagnosis.SchedulerRefused, title, by+" decides by its own rules, which are not run here", again, log)
	ch.Risk = diagnosis.LowRisk
	return ch
}

// readySince says whether a node is Ready, and was not at a time.
func readySince(n *view.Node, at time.Time) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(k corev1.NodeCondition) bool {
		return k.Type == corev1.NodeReady && k.Status == corev1.ConditionTrue && k.LastTransitionTime.After(at)
	})
}
