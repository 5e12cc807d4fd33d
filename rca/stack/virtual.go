package stack

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// sandboxed: the GPU Operator gives the node's GPUs to virtual machines, by the node's label or,
// where it has none, by the policy's default (gpu-operator controllers/state_manager.go). Who holds
// them for machines loses them when they are given back. Whether it serves any its ClusterPolicy tells.
func (s *Stack) sandboxed(n *view.Node) *Finding {
	if s.policy != "" && s.workload == "" {
		return nil // told to serve no virtual machines, the operator minds no such label
	}
	kind, fact, ref, claims := n.Labels[workloadKind], "label "+workloadKind+"=", n.Ref(), n.Labelled(workloadKind)
	says := "gives its GPUs to virtual machines: label " + workloadKind + "=" + kind
	if kind == "" {
		if n.Labels[deployPlugin] != "" || !knownGPU(n) {
			return nil
		}
		kind, fact, ref, claims = s.workload, "spec.sandboxWorkloads.defaultWorkload is ", "ClusterPolicy/"+s.policy, []diagnosis.Claim{diagnosis.That("spec.sandboxWorkloads.defaultWorkload", "", diagnosis.Is, s.workload)}
		says = fmt.Sprintf("gives its GPUs to virtual machines: it has no label %s, and the GPU Operator's default is %s", workloadKind, kind)
	}
	if !strings.HasPrefix(kind, otherWorkload) {
		return nil
	}
	f := s.finding(Labels, KeptOff, diagnosis.GPUStackNotOnNode, says, ref, fact+kind, claims...)
	if s.policy == "" {
		f.Certainty = diagnosis.Likely
	}
	m := relabel(n, workloadKind, "container", "it is given to containers")
	if held := parts.Holding(n, makers.ForMachines); len(held) > 0 {
		m.Risk = diagnosis.HighRisk
		m.Steps = append([]string{"see that " + view.PodList(held) + " may end first: " + parts.Hold(len(held)) + " GPUs of the node for virtual machines, which are taken away"}, m.Steps...)
		f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "GPUs are held there for virtual machines by "+view.PodList(held), heldBy(n, held)...))
	}
	f.Mends = []Mend{m}
	return f
}

// givenToContainers: the pod asks for a card by its name for virtual machines, which nobody announces, and
// the GPU Operator gives the node's GPUs, which are of that name as far as it tells, to containers. A node
// does one or the other (gpu-operator controllers/state_manager.go).
func (s *Stack) givenToContainers(n *view.Node, resource corev1.ResourceName) *Finding {
	kind := cmp.Or(n.Labels[workloadKind], s.workload, ofContainers)
	if s.policy == "" || kind != ofContainers || !managed(n) || len(n.Hardware()) == 0 || !named(resource, n.Labels["nvidia.com/gpu.product"]) || everAnnounced(s.w, resource) {
		return nil
	}
	says := "gives its GPUs to containers, and none to virtual machines, which ask " + string(resource) + ": "
	fact, ref, claims := "", n.Ref(), n.Labelled(workloadKind)
	switch label := n.Labels[workloadKind]; {
	case label != "":
		fact = "label " + workloadKind + "=" + label
		says += fact
	case s.workload == "":
		ref, claims = "ClusterPolicy/"+s.policy, []diagnosis.Claim{diagnosis.That("spec.sandboxWorkloads.enabled", "", diagnosis.IsNot, "true")}
		fact = "spec.sandboxWorkloads is not enabled"
		says += "the GPU Operator is not told to serve any"
	default:
		fact = "no label " + workloadKind
		claims = []diagnosis.Claim{diagnosis.That(diagnosis.Labels, workloadKind, diagnosis.Absent, "")}
		says += "it has no label " + workloadKind + ", and the GPU Operator's default is " + s.workload
	}
	f := s.finding(Labels, KeptOff, diagnosis.GPUStackNotOnNode, says, ref, fact, claims...)
	f.Certainty = diagnosis.Likely // whether its cards are those that are asked is in no object
	f.Mends = []Mend{s.toMachines(n, resource)}
	return f
}

// toMachines is what gives a node's GPUs to virtual machines: containers lose them.
func (s *Stack) toMachines(n *view.Node, resource corev1.ResourceName) Mend {
	to := "vm-passthrough"
	if ofVGPU.MatchString(string(resource)) {
		to = "vm-vgpu"
	}
	m := relabel(n, workloadKind, to, "it is given to virtual machines, and offers no "+string(view.WholeGPU)+" any more")
	m.Until, m.Unproven = "", "under which name its cards are announced then is in no object"
	m.Risk = diagnosis.MediumRisk
	m.Commands = append(m.Commands, "kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'")
	if s.workload == "" {
		m.Commands = append([]string{fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"sandboxWorkloads":{"enabled":true}}}'`, s.policy)}, m.Commands...)
	}
	if held := parts.Users(n); len(held) > 0 {
		m.Risk, m.Stops = diagnosis.HighRisk, held
		m.Steps = append([]string{"see that " + view.PodList(held) + " may end first: " + parts.Hold(len(held)) + " GPUs of the node, which are taken away"}, m.Steps...)
	}
	return m
}

// everAnnounced says whether any node has had the resource announced.
func everAnnounced(w *view.Cluster, resource corev1.ResourceName) bool {
	return slices.ContainsFunc(w.SortedNodes(), func(n *view.Node) bool { _, has := n.Status.Capacity[resource]; return has })
}

// ofVGPU is the name of a vGPU: that of the card, its memory in GiB and the series.
var ofVGPU = regexp.MustCompile(`-[0-9]+[ABCQ]$`)

// named says whether a resource may be named after a product, as GPU feature discovery spells it: they share a
// word with a digit, as A10. Ids of devices, and products that nobody has told, may be anything.
func named(resource corev1.ResourceName, product string) bool {
	_, name, _ := strings.Cut(string(resource), "/")
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToUpper(s), func(r rune) bool { return r == '_' || r == '-' })
	}
	if product == "" || !strings.ContainsAny(name, "_-") {
		return true
	}
	return slices.ContainsFunc(words(product), func(w string) bool {
		return strings.ContainsAny(w, "0123456789") && slices.Contains(words(name), w)
	})
}
