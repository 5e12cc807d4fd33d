package stack

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// keptOff: the device plugin is installed, and has no pod on the node.
func (s *Stack) keptOff(n *view.Node, d *parts.Set) *Finding {
	m := d.Misses(n)
	if m.None() {
		return s.refusedPod(n, d, PluginOnNode)
	}
	if young := s.since(n.CreationTimestamp.Time); len(m.Taints) == 0 && !n.CreationTimestamp.IsZero() && young < labelTime {
		if f := s.soon(n, PluginOnNode, "what labels nodes"); f != nil {
			return f
		}
	}
	if parts.Unlooked(n) && d.Discovered(n, m) && len(s.kit.Sets(parts.Discovery)) > 0 {
		return s.undiscovered(n) // what writes the labels that it goes by is kept off itself
	}
	until := "the device plugin of " + n.Name + " has announced its GPUs"
	f := s.finding(PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has no pod of the device plugin %s/%s: %s", d.Namespace, d.Name, d.Text(n, m)), d.Ref(), d.Text(n, m), d.Claims(n, m)...)
	f.Mends = []Mend{s.letOn(n, d, m, until)}
	return f
}

// letOn is what lets a DaemonSet onto a node: its labels, and a toleration.
func (s *Stack) letOn(n *view.Node, d *parts.Set, m parts.Misses, until string) Mend {
	var tolerate func([]corev1.Taint) string
	if ofPolicy(d) {
		tolerate = func(taints []corev1.Taint) string { return s.tolerate(d, taints) }
	}
	way := d.Let(n, m, gpuPresent, tolerate)
	out := Mend{Kind: diagnosis.RepairDeviceStack, Title: way.Title(), Until: until, Risk: diagnosis.LowRisk, Minutes: 3,
		Commands: append(way.Commands, fmt.Sprintf("kubectl -n %s get pods -o wide --field-selector spec.nodeName=%s", d.Namespace, n.Name))}
	if way.Untold {
		out.Unproven = "which labels its affinity should ask for is not known"
	}
	switch {
	case way.Edits && len(m.Taints) > 0 && ofPolicy(d): // of all that the GPU Operator makes: a driver may be upgraded for it
		out.StopsUnknown = true
	case way.Edits:
		out.Stops = d.Rolled(s.w)
	}
	return out
}

// ofPolicy says whether what a DaemonSet tolerates is written in the GPU Operator's ClusterPolicy, for all that it makes.
func ofPolicy(d *parts.Set) bool {
	return d.OfOperator() || d.Role == parts.Driver || d.Role == parts.Toolkit
}

// ofGPUs is the toleration that NVIDIA's charts and manifests bring along.
var ofGPUs = corev1.Toleration{Key: string(view.WholeGPU), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}

// tolerate is the command that has what the GPU Operator makes tolerate taints. A list replaces the one
// before, and its default, so what is tolerated now is written out too.
func (s *Stack) tolerate(d *parts.Set, taints []corev1.Taint) string {
	has := d.Spec.Template.Spec.Tolerations
	if !slices.ContainsFunc(has, func(t corev1.Toleration) bool { return t.Key == ofGPUs.Key }) {
		has = slices.Concat([]corev1.Toleration{ofGPUs}, has)
	}
	return fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"daemonsets":{"tolerations":%s}}}'`, s.policyName(), parts.Tolerations(has, taints))
}

// relabel is what a label of the node that keeps something off is changed to.
func relabel(n *view.Node, key, value, so string) Mend {
	return Mend{Kind: diagnosis.RepairDeviceStack, Title: "label " + n.Name + " " + key + "=" + value, Until: "the device plugin of " + n.Name + " has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 3,
		Steps:    []string{"ask who set the label", fmt.Sprintf("set %s=%s: %s", key, value, so)},
		Commands: []string{"kubectl label node " + n.Name + " " + key + "=" + value + " --overwrite"}}
}

// refusedPod: the DaemonSet selects the node, and its pod is not there: refused before it
// existed, or for a RuntimeClass that does not exist.
func (s *Stack) refusedPod(n *view.Node, d *parts.Set, link Link) *Finding {
	who := string(d.Role)
	until := "the device plugin of " + n.Name + " has announced its GPUs"
	if f := s.runtimeClass(n, d); f != nil {
		return f
	}
	if e := s.kit.Refused(d); e != nil {
		f := s.finding(link, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has no pod of the %s %s/%s: the API server refuses it: %s", who, d.Namespace, d.Name, view.Quotable(afterColon(e.Message), maxWords)), d.Ref(), "FailedCreate: "+view.Quotable(e.Message, 240), diagnosis.Says(e.Message))
		if d.Status.CurrentNumberScheduled >= d.Status.DesiredNumberScheduled && d.Status.DesiredNumberScheduled > 0 {
			f.Certainty = diagnosis.Likely // its status says that all its pods are there
		}
		f.Mends = []Mend{admit(n, d, e.Message, until)}
		return f
	}
	age := s.since(n.CreationTimestamp.Time)
	if made := s.since(d.CreationTimestamp.Time); made < age {
		age = made
	}
	if age < podTime {
		f := s.finding(link, Starting, startingCause(link), "is to get its pod of the "+who+" in a few minutes", d.Ref(), "it selects the node, which is "+view.Age(s.since(n.CreationTimestamp.Time))+" old")
		f.Mends = []Mend{waitFor(n, who, podTime-age)}
		return f
	}
	f := s.finding(link, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has no pod of the %s %s/%s, which selects it", who, d.Namespace, d.Name), d.Ref(), fmt.Sprintf("selects the node; %d of %d pods scheduled", d.Status.CurrentNumberScheduled, d.Status.DesiredNumberScheduled), d.Counted()...)
	f.Certainty = diagnosis.Likely
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "see why " + d.Namespace + "/" + d.Name + " makes no pod for " + n.Name, Until: until, Risk: diagnosis.NoRisk, Minutes: 5,
		Commands: []string{fmt.Sprintf("kubectl -n %s describe daemonset %s", d.Namespace, d.Name)}}}
	return f
}

func startingCause(link Link) diagnosis.CauseID {
	switch link {
	case Driver:
		return diagnosis.DriverNotReady
	case Runtime:
		return diagnosis.RuntimeNotConfigured
	case PluginOnNode, Plugin, Registration:
		return diagnosis.DevicePluginDown
	}
	return diagnosis.GPUStackNotOnNode
}

// admit is what has the API server accept a DaemonSet's pods, by what refuses them.
func admit(n *view.Node, d *parts.Set, message, until string) Mend {
	title, steps, commands, risk := d.Accept(message)
	commands = append(commands, fmt.Sprintf("kubectl -n %s get pods -o wide --field-selector spec.nodeName=%s", d.Namespace, n.Name))
	return Mend{Kind: diagnosis.RepairDeviceStack, Title: title, Steps: steps, Commands: commands, Until: until, Risk: risk, Minutes: 3}
}

// afterColon leaves of "Error creating: pods … is forbidden: …" what is said.
func afterColon(message string) string {
	_, rest, found := strings.Cut(message, "is forbidden: ")
	if !found {
		return strings.TrimPrefix(message, "Error creating: ")
	}
	return rest
}
