package stack

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Untold is for a node of which nothing says whether its machine has a GPU, in a cluster where
// nothing says so of any: a device plugin is installed, goes by labels that only node feature
// discovery writes, and nobody looks; or it is there, and sees none. Whether there is a GPU only a
// person knows. nil where something has looked, or the machine's type is told, and where what
// would tell was not read.
func (s *Stack) Untold(n *view.Node) *Finding {
	if s.notSeen() != "" || !parts.Unlooked(n) || parts.MachineTold(n) {
		return nil
	}
	if l := s.part(n, parts.Discovery); l.pod != nil || s.w.HasGPUs() {
		return l.unable()
	}
	if l := s.pluginOn(n); l != nil {
		return l.blind()
	}
	d := s.serving(n)
	if d == nil {
		return s.operatorBlind(n)
	}
	m := d.Misses(n)
	if m.None() {
		return s.meant(n, d)
	}
	if f := shutOut(s, n, d); f != nil {
		return f
	}
	if len(m.Taints) > 0 || !d.Discovered(n, m) {
		return nil
	}
	why := "which is not installed"
	if len(s.kit.Sets(parts.Discovery)) > 0 {
		why = "which has no pod there"
	}
	says := fmt.Sprintf("may have GPUs that nobody has looked for: the device plugin %s/%s goes by labels that node feature discovery writes, %s: %s", d.Namespace, d.Name, why, d.Text(n, m))
	f := s.finding(Discovery, Unseen, diagnosis.GPUStackNotOnNode, says, n.Ref(), untold, parts.NotLooked())
	f.Certainty = diagnosis.Possible
	f.Evidence = append(f.Evidence, diagnosis.Fact(d.Ref(), d.Text(n, m), d.Claims(n, m)...))
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "install node feature discovery, or label " + n.Name + " by hand if its machine has a GPU", Risk: diagnosis.LowRisk, Minutes: 5,
		Steps:    []string{"see on the machine whether it has an NVIDIA GPU", "have node feature discovery tell: with the plugin's chart gfd.enabled=true, with the GPU Operator nfd.enabled=true"},
		Commands: parts.LookFor(s.w, n, d), Unproven: "nothing tells whether the machine of " + n.Name + " has a GPU"}}
	return f
}

// meant: the API server refuses the device plugin's pods, so it has told of nothing. Where it selects the node by labels
// that a person has given it, that says what it is for. nil where it is not refused.
func (s *Stack) meant(n *view.Node, d *parts.Set) *Finding {
	if s.kit.Refused(d) == nil {
		return nil
	}
	f := s.refusedPod(n, d, PluginOnNode)
	if f.State = Unseen; len(d.Spec.Template.Spec.NodeSelector) > 0 {
		f.Certainty, f.Says = diagnosis.Likely, "is to have GPUs, for the device plugin selects it by label, and "+f.Says
	} else {
		f.Certainty, f.Says = diagnosis.Possible, "may have GPUs that nobody has looked for: "+f.Says
	}
	f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), untold, parts.NotLooked()))
	for i := range f.Mends {
		f.Mends[i].Until, f.Mends[i].Unproven = "", "nothing tells whether the machine of "+n.Name+" has a GPU"
	}
	return f
}

// operatorBlind: the GPU Operator is installed, puts its parts on nodes that node feature discovery has labelled, and
// that is not: its chart brings it along, OpenShift's has an operator of its own (gpu-operator issue 99).
func (s *Stack) operatorBlind(n *view.Node) *Finding {
	pod := s.operator
	if pod == nil {
		return nil
	}
	if len(s.kit.Sets(parts.Discovery)) > 0 {
		return shutOut(s, n, nil)
	}
	l, fact := s.kit.Look(pod), s.kit.Look(pod).Text()
	if l.State == "" {
		fact = "it runs"
	}
	f := s.finding(Discovery, Unseen, diagnosis.GPUStackMissing, fmt.Sprintf("may have GPUs that nobody has looked for: the GPU Operator %s/%s goes by labels that node feature discovery writes, which is not installed", pod.Namespace, pod.Name), n.Ref(), untold, parts.NotLooked())
	f.Certainty = diagnosis.Possible
	f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(pod), fact, l.Claims...))
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "install node feature discovery, by which the GPU Operator finds nodes with GPUs", Risk: diagnosis.LowRisk, Minutes: 10,
		Steps:    []string{"see on the machine whether it has an NVIDIA GPU", "have node feature discovery tell: with the GPU Operator's chart nfd.enabled=true, on OpenShift its own operator and an object NodeFeatureDiscovery"},
		Unproven: "nothing tells whether the machine of " + n.Name + " has a GPU",
		Commands: []string{"kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host lspci -nn -d 10de:", "kubectl get nodefeaturediscoveries -A  # on OpenShift; elsewhere: helm -n " + pod.Namespace + " upgrade --reuse-values RELEASE nvidia/gpu-operator --set nfd.enabled=true", "kubectl get nodes -L " + view.GPULabels[0]}}}
	return f
}

// unable: node feature discovery has a pod on the node that fails, so nobody has looked there. nil where it
// has none, or that runs and has seen nothing.
func (p *part) unable() *Finding {
	if len(p.s.kit.Sets(parts.Plugin)) == 0 && p.s.operator == nil && p.s.policy == "" {
		return nil
	}
	return p.unseeing("GPUs", "which does")
}

// unableFor is that of another maker's GPUs, whose device plugin goes by what node feature discovery alone writes.
func (p part) unableFor(m *makers.Maker, resource corev1.ResourceName) *Finding {
	d := p.s.kit.ByDiscovery(p.n, m.Plugin)
	if d == nil || p.s.notSeen() != "" || parts.MachineTold(p.n) {
		return nil
	}
	f := p.unseeing(m.Devs()+" of "+m.Whose, fmt.Sprintf("by whose labels %s/%s is put on nodes", d.Namespace, d.Name))
	if f != nil {
		x := d.Misses(p.n)
		f.Evidence = append(append([]diagnosis.Evidence{diagnosis.NoneOf(p.n.Node, resource)}, f.Evidence...), diagnosis.Fact(d.Ref(), d.Text(p.n, x), d.Claims(p.n, x)...))
	}
	return f
}

// unseeing is a finding where node feature discovery fails on the node; nil where it has no pod, or that runs.
func (p part) unseeing(what, which string) *Finding {
	if p.pod == nil || p.State != parts.Failed && !p.Loops {
		return nil
	}
	f := p.finding(Discovery, Unseen, diagnosis.GPUStackNotOnNode, "may have "+what+" that nobody has looked for: node feature discovery, "+which+", fails there at "+p.Text())
	f.Certainty, f.Evidence = diagnosis.Possible, append(f.Evidence, diagnosis.Fact(p.n.Ref(), untold, parts.NotLooked()))
	f.Mends = []Mend{p.mendDiscovery("")}
	f.Mends[0].Unproven = "nothing tells whether the machine of " + p.n.Name + " has a GPU"
	return f
}

const untold = "no label of node feature discovery, a cloud or an autoscaler says whether its machine has a GPU"

// Looked says whether something has looked for a GPU on the node's machine, or the machine's type tells: only then is a node
// without a sign of one a node without one.
func Looked(n *view.Node) bool {
	return n.Geometry != nil || !parts.Unlooked(n) || parts.MachineTold(n)
}

// Unlooked says whether there is a node of which nothing says whether its machine has a GPU.
func (s *Stack) Unlooked() bool {
	if s.unlookedAny == nil {
		s.unlookedAny = new(slices.ContainsFunc(s.w.SortedNodes(), func(n *view.Node) bool { return s.Untold(n) != nil }))
	}
	return *s.unlookedAny
}

// blind: the device plugin has a pod on the node that sees no GPU, and runs by the node's own
// runtime. A machine without a GPU looks the same as one whose runtime hands none out.
func (l *pluginLink) blind() *Finding {
	n, pod := l.n, l.pod
	if f := l.unheard(); f != nil && l.State == "" && l.s.since(l.Since) > kubeletTime {
		f.State, f.Says = Unseen, "may have GPUs that nobody hears of: "+strings.TrimPrefix(f.Says, hasGPUs)
		f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), untold, parts.NotLooked()))
		f.Mends[0].Until, f.Mends[0].Unproven = "", "nothing tells whether the machine of "+n.Name+" has a GPU"
		return f
	}
	if !l.alone() || !l.Loops && !l.bare() && len(homes.Notes(n)) == 0 && len(pod.Spec.NodeSelector) == 0 {
		return nil // one that is put on every node says nothing of any as long as it runs
	}
	does := "runs there and announces none"
	switch {
	case l.State == "" && l.s.since(l.Since) > kubeletTime:
	case l.Loops && !strings.Contains(l.Whole, "Image"):
		does = "crashes there"
	default:
		return nil
	}
	f := l.s.finding(Runtime, Unseen, diagnosis.RuntimeNotConfigured, "may have GPUs that its device plugin does not see: it "+does, n.Ref(), untold, parts.NotLooked())
	f.Certainty = diagnosis.Possible
	m, fact := l.s.configure(n), l.Text()
	m.Title = "see whether " + n.Name + " has a GPU, and have its container runtime hand it out"
	if l.bare() {
		fact, l.Claims = fact+"; no runtimeClassName", append(l.Claims, diagnosis.That("spec.runtimeClassName", "", diagnosis.Absent, ""))
	} else { // it runs by NVIDIA's
		m.Title, m.Steps, m.Commands = "see whether "+n.Name+" has a GPU, and a driver that works", nil, homes.Driver(n)
		if len(homes.Notes(n)) == 0 {
			f.Link, f.Cause = Plugin, diagnosis.DevicePluginDown
		}
	}
	m.Steps = append(m.Steps, homes.Notes(n)...)
	f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(pod), fact, l.Claims...))
	m.Steps = append([]string{"see what the device plugin says, and that nvidia-smi works on the machine: without a GPU or its driver no runtime helps"}, m.Steps...)
	m.Commands = append([]string{fmt.Sprintf("kubectl -n %s logs %s --tail=50", pod.Namespace, pod.Name)}, m.Commands...)
	m.Commands = append(m.Commands, fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again, and it looks when it starts", pod.Namespace, pod.Name))
	m.Unproven = "nothing tells whether the machine of " + n.Name + " has a GPU"
	f.Mends = []Mend{m}
	return f
}
