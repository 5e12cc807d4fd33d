package causes

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// ofPod are claims about the waiting pod; none where it does not exist.
func (c *Case) ofPod(claims ...diagnosis.Claim) []diagnosis.Claim {
	if c.Unborn || c.Cluster.State.Pod(c.Pod.Namespace, c.Pod.Name) == nil {
		return nil
	}
	for i := range claims {
		claims[i].Ref = c.podRef()
	}
	return claims
}

// itAsks claims what the pod asks of a resource.
func (c *Case) itAsks(name corev1.ResourceName) []diagnosis.Claim {
	q := c.Wants[name]
	return c.ofPod(diagnosis.That(diagnosis.Requests, string(name), diagnosis.Is, q.String()))
}

// untolerated claims that a node has a taint, and the pod nothing against it.
func (c *Case) untolerated(n *view.Node, t corev1.Taint) []diagnosis.Claim {
	return append(c.ofPod(diagnosis.That("spec.tolerations", "", diagnosis.ToleratesNot, t.ToString())), n.Tainted(t))
}

// missedClaims are what the pod wants of a label, and what nodes like this one have; whose
// evidence it becomes is the node.
func (c *Case) missedClaims(n *view.Node, l MissedLabel) []diagnosis.Claim {
	path := "spec.nodeSelector[" + l.Key + "]"
	if !l.InSelector {
		list := "matchExpressions"
		if l.ByName {
			list = "matchFields"
		}
		path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[" + strconv.Itoa(l.Term) + "]." + list + "[" + strconv.Itoa(l.At) + "].values"
	}
	var wanted []diagnosis.Claim
	for _, v := range l.Values {
		wanted = append(wanted, diagnosis.That(path, "", diagnosis.Is, v))
	}
	has, ok := l.Of(n.Node)
	switch {
	case l.ByName:
		return append(c.ofPod(wanted...), diagnosis.That("metadata.name", "", diagnosis.Is, has))
	case ok:
		return append(c.ofPod(wanted...), diagnosis.That(diagnosis.Labels, l.Key, diagnosis.Is, has))
	}
	return append(c.ofPod(wanted...), diagnosis.That(diagnosis.Labels, l.Key, diagnosis.Absent, ""))
}

// since claims when a condition became what it is.
func since(condition string, at time.Time) diagnosis.Claim {
	return diagnosis.That("status.conditions[type="+condition+"].lastTransitionTime", "", diagnosis.Is, at.UTC().Format(time.RFC3339))
}

// lacksClaims are how many pods an owner wants, where one field says so, and what it was
// told last.
func lacksClaims(r incident.Refusal) []diagnosis.Claim {
	var out []diagnosis.Claim
	switch r.Owner.Kind {
	case "ReplicaSet", "StatefulSet", "Deployment":
		out = append(out, diagnosis.That("spec.replicas", "", diagnosis.Is, strconv.Itoa(r.Wants)))
	case "DaemonSet":
		out = append(out, diagnosis.That("status.desiredNumberScheduled", "", diagnosis.Is, strconv.Itoa(r.Wants)))
	}
	if r.Says != "" {
		out = append(out, diagnosis.Says(r.Says))
	}
	return out
}

// conditionIs claims a condition's status.
func conditionIs(kind, status string) diagnosis.Claim {
	return diagnosis.That("status.conditions[type="+kind+"].status", "", diagnosis.Is, status)
}

// holding claims what a pod asks, and where it runs.
func holding(p *corev1.Pod, name corev1.ResourceName, amount string) []diagnosis.Claim {
	return []diagnosis.Claim{diagnosis.That(diagnosis.Requests, string(name), diagnosis.Is, amount), diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName)}
}

// priority claims the pod's priority and its class.
func (c *Case) priority(is int32) []diagnosis.Claim {
	return c.ofPod(diagnosis.That("spec.priority", "", diagnosis.Is, strconv.Itoa(int(is))), diagnosis.That("spec.priorityClassName", "", diagnosis.Is, c.Pod.Spec.PriorityClassName))
}

// gated claims scheduling gates of the pod.
func (c *Case) gated(gates ...string) []diagnosis.Claim {
	out := make([]diagnosis.Claim, len(gates))
	for i, gate := range gates {
		out[i] = diagnosis.That("spec.schedulingGates", "name="+gate, diagnosis.Exists, "")
	}
	return c.ofPod(out...)
}

// notAdmittedClaims are the words of a Workload's conditions; none where it has none.
func notAdmittedClaims(why string) []diagnosis.Claim {
	if why == "" {
		return nil
	}
	return []diagnosis.Claim{diagnosis.Says(why)}
}

// saysOf claims a condition's own words, where it has any.
func saysOf(k scaling.Condition) []diagnosis.Claim {
	if k.Message == "" {
		return nil
	}
	return []diagnosis.Claim{diagnosis.Says(k.Message)}
}

// limitClaims are a pool's limits, and what is used of them.
func limitClaims(p *scaling.Pool) []diagnosis.Claim {
	var out []diagnosis.Claim
	for _, name := range view.SortedNames(p.Limits) {
		limit := p.Limits[name]
		out = append(out, diagnosis.That("spec.limits", string(name), diagnosis.Is, limit.String()))
		if used, known := p.Used[name]; known {
			out = append(out, diagnosis.That("status.resources", string(name), diagnosis.Is, used.String()))
		}
	}
	return out
}

// running claims where pods run.
func running(pods []*corev1.Pod) []diagnosis.Claim {
	out := make([]diagnosis.Claim, len(pods))
	for i, p := range pods {
		out[i] = diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName).Of(view.PodRef(p))
	}
	return out
}

// unspoken claims that no scheduler has judged the pod.
func (c *Case) unspoken() []diagnosis.Claim {
	out := []diagnosis.Claim{diagnosis.That("status.conditions[type=PodScheduled]", "", diagnosis.Absent, "")}
	if name := c.Pod.Spec.SchedulerName; name != "" {
		out = append(out, diagnosis.That("spec.schedulerName", "", diagnosis.Is, name))
	}
	return c.ofPod(out...)
}

// zeros claims that none is asked of resources.
func (c *Case) zeros(names []string) []diagnosis.Claim {
	out := make([]diagnosis.Claim, len(names))
	for i, name := range names {
		out[i] = diagnosis.That(diagnosis.Requests, name, diagnosis.Is, "0")
	}
	return c.ofPod(out...)
}

// missingClaims claim that an object is not there, where that is the fact.
func missingClaims(fact string) []diagnosis.Claim {
	if fact != "does not exist" {
		return nil
	}
	return []diagnosis.Claim{diagnosis.That("", "", diagnosis.Absent, "")}
}
