package parts

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// containerClaims are what is said of a container that is not done or not ready.
func containerClaims(c corev1.ContainerStatus, init bool) []diagnosis.Claim {
	at := "status.containerStatuses[name=" + c.Name + "]"
	if init {
		at = "status.initContainerStatuses[name=" + c.Name + "]"
	}
	is := func(path, value string) diagnosis.Claim { return diagnosis.That(at+path, "", diagnosis.Is, value) }
	var out []diagnosis.Claim
	switch now := c.State; {
	case now.Waiting != nil && now.Waiting.Reason != "":
		out = append(out, is(".state.waiting.reason", now.Waiting.Reason))
		if now.Waiting.Message != "" {
			out = append(out, diagnosis.That(at+".state.waiting", "", diagnosis.Contains, diagnosis.Says(answered(now.Waiting.Message)).Value))
		}
	case now.Terminated != nil:
		out = append(out, is(".state.terminated.exitCode", strconv.Itoa(int(now.Terminated.ExitCode))))
	case now.Running != nil:
		out = append(out, diagnosis.That(at+".state.running", "", diagnosis.Exists, ""))
	default:
		out = append(out, diagnosis.That(at, "", diagnosis.Exists, ""))
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		out = append(out, is(".restartCount", strconv.Itoa(int(c.RestartCount))), is(".lastState.terminated.exitCode", strconv.Itoa(int(last.ExitCode))))
		if last.Message != "" {
			out = append(out, diagnosis.That(at+".lastState.terminated", "", diagnosis.Contains, diagnosis.Says(inner(last.Message)).Value))
		}
	}
	return out
}

// Claims are what the DaemonSet wants, and what the node has instead.
func (d *Set) Claims(n *view.Node, m Misses) []diagnosis.Claim {
	const spec = "spec.template.spec."
	var out []diagnosis.Claim
	for _, label := range m.Labels {
		key, want, _ := strings.Cut(label, "=")
		out = append(out, diagnosis.That(spec+"nodeSelector", key, diagnosis.Is, want))
		out = append(out, n.Labelled(key)...)
	}
	for _, t := range m.Taints {
		out = append(out, diagnosis.That(spec+"tolerations", "", diagnosis.ToleratesNot, t.ToString()), n.Tainted(t))
	}
	if a := view.RequiredAffinity(&corev1.Pod{Spec: d.Spec.Template.Spec}); m.Affinity && a != nil {
		for _, t := range a.NodeSelectorTerms {
			for _, e := range t.MatchExpressions {
				out = append(out, diagnosis.That(spec+"affinity", "", diagnosis.Contains, e.Key))
				out = append(out, n.Labelled(e.Key)...)
			}
		}
	}
	return out
}

// Counted claims how many pods the DaemonSet has, and should have.
func (d *Set) Counted() []diagnosis.Claim {
	return []diagnosis.Claim{diagnosis.That("status.currentNumberScheduled", "", diagnosis.Is, strconv.Itoa(int(d.Status.CurrentNumberScheduled))),
		diagnosis.That("status.desiredNumberScheduled", "", diagnosis.Is, strconv.Itoa(int(d.Status.DesiredNumberScheduled)))}
}

// Ref is the DaemonSet as evidence names it.
func (d *Set) Ref() string { return "DaemonSet/" + d.Namespace + "/" + d.Name }
