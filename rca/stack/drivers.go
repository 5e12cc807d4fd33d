package stack

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
)

// unchosen: the GPU Operator makes drivers by NVIDIADrivers (spec.driver.useNvidiaDriverCRD of its
// ClusterPolicy), and none of them chooses the node: it is given no DaemonSet, and nothing says so
// on the node.
func (l *driverLink) unchosen(label string) *Finding {
	s, n := l.s, l.n
	if label == "pre-installed" || label == "false" || !s.byDrivers() || s.unread("NVIDIADriver") != "" {
		return nil
	}
	var best *unstructured.Unstructured
	var least []string
	for _, d := range s.w.State.NVIDIADrivers {
		lacks := parts.Unmet(n, parts.DriverSelector(d))
		if len(lacks) == 0 {
			return l.conflicting(d)
		}
		if best == nil || len(lacks) < len(least) {
			best, least = d, lacks
		}
	}
	until := "the driver of " + n.Name + " is loaded and its device plugin has announced its GPUs"
	by := diagnosis.Fact("ClusterPolicy/"+s.policy, "spec.driver.useNvidiaDriverCRD is true", diagnosis.That("spec.driver.useNvidiaDriverCRD", "", diagnosis.Is, "true"))
	if best == nil {
		f := s.finding(Driver, Missing, diagnosis.DriverNotReady, "has no driver: the GPU Operator makes drivers by NVIDIADrivers, and there is none", by.Ref, by.Fact, append(by.Claims, diagnosis.That("", "", diagnosis.Absent, "").Of("NVIDIADriver/*"))...)
		f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "make an NVIDIADriver, or leave the driver to the ClusterPolicy again", Until: until, Risk: diagnosis.LowRisk, Minutes: 15,
			Commands: []string{fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"driver":{"useNvidiaDriverCRD":false}}}'  # or: helm upgrade --reuse-values --set driver.nvidiaDriverCRD.deployDefaultCR=true`, s.policy), "kubectl get nvidiadrivers -w"}}}
		return f
	}
	name, text := best.GetName(), strings.Join(parts.Lacking(n, least), "; ")
	var commands []string
	var claims []diagnosis.Claim
	for _, label := range least {
		key, value, _ := strings.Cut(label, "=")
		commands = append(commands, "kubectl label node "+n.Name+" "+label+" --overwrite")
		claims = append(append(claims, diagnosis.That("spec.nodeSelector", key, diagnosis.Is, value)), n.Labelled(key)...)
	}
	f := s.finding(Driver, KeptOff, diagnosis.DriverNotReady, fmt.Sprintf("has no driver: the GPU Operator makes drivers by NVIDIADrivers, and none chooses it: %s: %s", name, text), "NVIDIADriver/"+name, text, claims...)
	f.Evidence = append(f.Evidence, by)
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: fmt.Sprintf("label %s %s, by which NVIDIADriver %s chooses nodes, or have that choose others", n.Name, strings.Join(least, " "), name), Until: until, Risk: diagnosis.LowRisk, Minutes: 15,
		Commands: append(commands, "kubectl edit nvidiadriver "+name+"  # or this: spec.nodeSelector; no two NVIDIADrivers may choose one node", "kubectl get nvidiadriver "+name+" -w")}}
	return f
}

// conflicting: the GPU Operator makes nothing of an NVIDIADriver that chooses nodes which another chooses, too, and looks at
// it again only once it changes (internal/validator; controllers/nvidiadriver_controller.go). nil where it says nothing of that.
func (l *driverLink) conflicting(d *unstructured.Unstructured) *Finding {
	const conflict = "ConflictingNodeSelector"
	s, n, name := l.s, l.n, d.GetName()
	says, is := parts.ConditionWith(d, conflict)
	if !is {
		return nil
	}
	f := s.finding(Driver, KeptOff, diagnosis.DriverNotReady, fmt.Sprintf("has no driver: NVIDIADriver %s chooses it, and the GPU Operator makes none by it: it says that another chooses the same nodes", name), "NVIDIADriver/"+name, conflict+": "+says,
		diagnosis.That("status.conditions[reason="+conflict+"].status", "", diagnosis.Is, "True"))
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "have the GPU Operator look at NVIDIADriver " + name + " again: no other chooses one of its nodes any more", Until: "the driver of " + n.Name + " is loaded and its device plugin has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 15,
		Commands: []string{"kubectl get nvidiadrivers -o custom-columns=NAME:.metadata.name,NODES:.spec.nodeSelector,STATE:.status.state", "kubectl rollout restart deployment gpu-operator -n GPU-OPERATOR'S-NAMESPACE  # it looks at all again when it starts", "kubectl get nvidiadriver " + name + " -w"}}
	if s.operator != nil {
		m.Commands[1] = "kubectl -n " + s.operator.Namespace + " rollout restart deployment gpu-operator  # it looks at all again when it starts"
	}
	if other := parts.Beside(s.w, d); other != "" {
		m.Title = "have NVIDIADriver " + name + " or " + other + " choose other nodes: no two may choose one"
		m.Commands[1] = "kubectl edit nvidiadriver " + other + "  # spec.nodeSelector: one without it takes every node with a GPU; or delete it, where it is the default that nobody needs"
	}
	f.Mends = []Mend{m}
	return f
}

// byDrivers says whether the GPU Operator makes drivers by NVIDIADrivers.
func (s *Stack) byDrivers() bool {
	return s.policy != "" && slices.ContainsFunc(s.w.State.ClusterPolicies, func(p *unstructured.Unstructured) bool { return p.GetName() == s.policy && parts.ByDrivers(p) })
}

// unwritten is for the driver whose DaemonSet would take the node, were it labelled for what it runs:
// node feature discovery has not written that, or not since the node was upgraded. nil where the
// driver is made for something else.
func (l *driverLink) unwritten(m parts.Misses, until string) *Mend {
	n := l.n
	if m.Affinity || len(m.Taints) > 0 || slices.ContainsFunc(m.Labels, func(label string) bool { return !parts.RunsIt(n, label) }) {
		return nil
	}
	out := l.lookAgain(until)
	for _, label := range m.Labels {
		if key, _, _ := strings.Cut(label, "="); n.Labels[key] == "" {
			out.Title, out.Minutes = fmt.Sprintf("have node feature discovery write label %s on %s: a newer version does where this one has not", key, n.Name), 20
			out.Commands = append(out.Commands, "kubectl label node "+n.Name+" "+label+"  # by hand meanwhile; wrong once the node is upgraded")
		}
	}
	return &out
}
