package causes

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// ofPod are claims about the waiting pod; none where it does not exist.
func (c *Case) ofPod(claims ...diagnosis.Claim) []diagnosis.Claim {
	if c.Unborn {
		return nil
	}
	return c.Cluster.OfPod(c.Pod, claims...)
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

// holding claims what a pod asks, and where it runs.
func holding(p *corev1.Pod, name corev1.ResourceName, amount string) []diagnosis.Claim {
	return []diagnosis.Claim{diagnosis.That(diagnosis.Requests, string(name), diagnosis.Is, amount), diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName)}
}

// priority claims the pod's priority and its class.
func (c *Case) priority(is int32) []diagnosis.Claim {
	return c.ofPod(diagnosis.That("spec.priority", "", diagnosis.Is, strconv.Itoa(int(is))), diagnosis.That("spec.priorityClassName", "", diagnosis.Is, c.Pod.Spec.PriorityClassName))
}

// running claims where pods run.
func running(pods []*corev1.Pod) []diagnosis.Claim {
	out := make([]diagnosis.Claim, len(pods))
	for i, p := range pods {
		out[i] = diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName).Of(view.PodRef(p))
	}
	return out
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
