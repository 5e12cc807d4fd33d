package rca

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// queueNotAdmitted: Kueue holds the pod by its gate until its Workload has quota. The
// Workload's own conditions say what it lacks; they are never on the pod.
var queueNotAdmitted = PodRule{
	ID: QueueNotAdmitted,
	Tell: func(c *Case) *finding {
		if !slices.ContainsFunc(c.Pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == queueGate }) {
			return nil
		}
		evidence := []Evidence{{c.ref(), "gate " + queueGate}}
		if q := c.Pod.Labels["kueue.x-k8s.io/queue-name"]; q != "" {
			evidence = append(evidence, Evidence{c.ref(), "queue " + q})
		}
		says := "its queue (Kueue) has not admitted it"
		if w := c.queued(); w != nil {
			why, fact := notAdmitted(w)
			evidence = append(evidence, Evidence{ref("Workload", w.GetNamespace(), w.GetName()), fact})
			if why != "" {
				says += ": " + cut(assigning.ReplaceAllString(why, ""), 160)
			}
		}
		return &finding{Proven, says, evidence}
	},
	changes: func(c *Case) []change {
		w := c.queued()
		if w == nil {
			return []change{queueChange(Wait, "none", "Kueue admits it", "wait until its queue admits it", "kubectl -n "+c.Pod.Namespace+" get workloads.kueue.x-k8s.io")}
		}
		look := fmt.Sprintf("kubectl -n %s describe workloads.kueue.x-k8s.io %s", w.GetNamespace(), w.GetName())
		why, _ := notAdmitted(w)
		if inactive(w) {
			return []change{queueChange(Manual, "none", "its Workload is active", "see who made its Workload inactive", look)}
		}
		raise := queueChange(RaiseQuota, "medium", "its ClusterQueue has the quota", "raise the quota of its ClusterQueue", look, "kubectl get clusterqueues.kueue.x-k8s.io", "# then kubectl edit clusterqueue.kueue.x-k8s.io NAME: nominalQuota or borrowingLimit")
		raise.minutes = 1
		switch {
		case strings.Contains(why, "maximum capacity"): // nobody who ends leaves enough (flavorassigner.go)
			return []change{raise}
		case strings.Contains(why, "insufficient"):
			return []change{queueChange(Wait, "none", "Kueue admits it", "wait until its queue admits it", look), raise}
		}
		return []change{queueChange(Wait, "none", "Kueue admits it", "wait until its queue admits it", look)}
	},
}

// assigning begins what Kueue says of one pod set (flavorassigner.go).
var assigning = regexp.MustCompile(`^couldn't assign flavors to pod set \S+: `)

func queueChange(kind FixKind, risk, until, title string, commands ...string) change {
	return change{kind: kind, manual: true, risk: risk, until: until, title: title, commands: commands}
}

// queued is the Workload that Kueue made for the pod, for what made it or for its group;
// nil when none was read.
func (c *Case) queued() *unstructured.Unstructured {
	makers := []types.UID{c.Pod.UID}
	for _, o := range c.Pod.OwnerReferences {
		makers = append(makers, o.UID)
	}
	w := c.Incident.Workload
	if owner, ok := c.world.state.Owner(w.Kind, w.Namespace, w.Name); ok {
		makers = append(makers, owner.GetUID())
	}
	for _, u := range c.world.state.QueuedWorkloads {
		if u.GetNamespace() != c.Pod.Namespace {
			continue
		}
		if name := u.GetName(); name == c.Pod.Annotations["kueue.x-k8s.io/workload"] || name == c.Pod.Labels["kueue.x-k8s.io/pod-group-name"] {
			return u
		}
		for _, o := range u.GetOwnerReferences() {
			if o.UID != "" && slices.Contains(makers, o.UID) {
				return u
			}
		}
	}
	return nil
}

func inactive(w *unstructured.Unstructured) bool {
	active, set, err := unstructured.NestedBool(w.Object, "spec", "active")
	return set && err == nil && !active
}

// notAdmitted is why a Workload is not admitted, in Kueue's words, and the condition that
// says so: quota comes before the checks behind it.
func notAdmitted(w *unstructured.Unstructured) (why, fact string) {
	if inactive(w) {
		return "its Workload is not active", "spec.active is false"
	}
	list, _, err := unstructured.NestedSlice(w.Object, "status", "conditions")
	if err != nil {
		return "", "its conditions cannot be read"
	}
	for _, kind := range []string{"QuotaReserved", "Admitted"} {
		for _, item := range list {
			k, ok := item.(map[string]any)
			if !ok || k["type"] != kind || k["status"] != "False" {
				continue
			}
			message, _ := k["message"].(string)
			message = strings.Join(strings.Fields(message), " ")
			return message, fmt.Sprintf("%s=False, %v: %s", kind, k["reason"], cut(message, 300))
		}
	}
	return "", "has no condition that says why"
}
