package stack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// DeployDriver is the label by which the GPU Operator has its driver on a node: "pre-installed" where the machine has its own.
const DeployDriver = parts.Deploys + "driver"

const (
	gpuPresent   = "nvidia.com/gpu.present"
	deployPlugin = parts.Deploys + "device-plugin"
	operands     = parts.Deploys + "operands"
	workloadKind = makers.WorkloadKind
	nfdLabels    = parts.Discovered
	// pausedBy begins the value that the driver's manager and MIG manager give the labels of
	// operands that they have stopped.
	pausedBy      = "paused-for-"
	pausedForNew  = "paused-for-driver-upgrade"
	pausedForMIG  = view.Paused
	otherWorkload = "vm-"
	ofContainers  = "container"
)

// labelled is the link that the GPU Operator's labels are: nil where the node carries the one
// that its device plugin is chosen by, or one that says that it is paused for a driver.
func (s *Stack) labelled(n *view.Node) *Finding {
	value := n.Labels[deployPlugin]
	if f := s.sandboxed(n); f != nil {
		return f
	}
	switch {
	case value == "true", strings.Contains(value, pausedForNew):
		return nil
	case strings.Contains(value, pausedBy):
		f := s.finding(Labels, Paused, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has its device plugin paused: label %s=%s", deployPlugin, value), n.Ref(), "label "+deployPlugin+"="+value, n.Labelled(deployPlugin)...)
		f.Mends = []Mend{relabel(n, deployPlugin, "true", "the device plugin is let back")}
		return f
	case value != "":
		f := s.finding(Labels, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has its device plugin switched off: label %s=%s", deployPlugin, value), n.Ref(), "label "+deployPlugin+"="+value, n.Labelled(deployPlugin)...)
		f.Mends = []Mend{relabel(n, deployPlugin, "true", "the device plugin is let back")}
		return f
	case n.Labels[operands] == "false":
		f := s.finding(Labels, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has all of the GPU Operator's parts switched off: label %s=false", operands), n.Ref(), "label "+operands+"=false", n.Labelled(operands)...)
		f.Mends = []Mend{relabel(n, operands, "true", "the GPU Operator's parts are let back")}
		return f
	}
	if knownGPU(n) {
		return s.unlabelled(n)
	}
	return s.undiscovered(n)
}

// knownGPU says whether the node's labels tell the GPU Operator that it has a GPU.
func knownGPU(n *view.Node) bool {
	return slices.ContainsFunc(view.GPULabels, func(key string) bool { return n.Labels[key] == "true" }) || n.Labels[gpuPresent] == "true"
}

// unlabelled: node feature discovery has spoken, and the GPU Operator has not.
func (s *Stack) unlabelled(n *view.Node) *Finding {
	if f := s.soon(n, Labels, "GPU Operator"); f != nil {
		return f
	}
	fact := "label " + deployPlugin + " is absent"
	if _, has := n.Labels[deployPlugin]; has {
		fact = "label " + deployPlugin + " is empty"
	}
	f := s.finding(Labels, Missing, diagnosis.GPUStackNotOnNode, "is known to have a GPU, and the GPU Operator has not labelled it for its device plugin", n.Ref(), fact, n.Labelled(deployPlugin)...)
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "see why the GPU Operator does not label " + n.Name, Until: "the GPU Operator has labelled " + n.Name + ", and its device plugin runs", Risk: diagnosis.LowRisk, Minutes: 10,
		Commands: []string{"kubectl get pods -A -l app=gpu-operator", "kubectl describe clusterpolicy " + s.policyName(), fmt.Sprintf("kubectl -n %s logs deploy/gpu-operator --tail=50", s.operatorNamespace())}}
	if labels := s.kit.OperandLabels(n); len(labels) > 0 {
		m.Title = "give " + n.Name + " the labels of the GPU Operator's parts, or see why it does not"
		m.Commands = append(m.Commands, "kubectl label node "+n.Name+" "+strings.Join(labels, " ")+" --overwrite  # it keeps what a person has written")
	}
	f.Mends = []Mend{m}
	return unsure(s, n, f)
}

// undiscovered: nothing tells the GPU Operator that the node has a GPU.
func (s *Stack) undiscovered(n *view.Node) *Finding {
	if f := s.soon(n, Discovery, "node feature discovery"); f != nil {
		return f
	}
	none := "has no label of node feature discovery"
	if i := slices.IndexFunc(view.GPULabels, func(key string) bool { return n.Labels[key] != "" }); i >= 0 {
		none = "has " + view.GPULabels[i] + " and no other label of node feature discovery"
	}
	until := "node feature discovery has labelled " + n.Name + ", and the device plugin runs there"
	if !parts.Unlooked(n) && !s.kit.ByHand(n) {
		f := s.finding(Discovery, Failed, diagnosis.GPUStackNotOnNode, "has none of the labels that the device plugin goes by ("+strings.Join(view.GPULabels, ", ")+"), though node feature discovery runs there: the device plugin is kept off", n.Ref(), "labels "+nfdLabels+"* are there, none of them is "+strings.Join(view.GPULabels, ", "), n.Labelled(view.GPULabels...)...)
		f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "see why node feature discovery sees no NVIDIA device on " + n.Name, Risk: diagnosis.LowRisk, Minutes: 15,
			Steps:    []string{"see that the machine has the GPU on its PCI bus", "see that node feature discovery reports devices of class 03 by their vendor"},
			Commands: []string{"kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host lspci -nn -d 10de:", "kubectl get nodefeatures -A " + n.Name + " -o yaml"},
			Unproven: "whether the machine has the device on its bus cannot be read here"}}
		return f
	}
	sets := s.kit.Sets(parts.Discovery)
	if len(sets) == 0 {
		if unread := s.notSeen(); unread != "" {
			f := s.finding(Discovery, Unseen, diagnosis.GPUStackNotOnNode, "has no label of node feature discovery, by which the device plugin is chosen", n.Ref(), "no label "+nfdLabels+"*; "+unread, diagnosis.That("keys("+diagnosis.Labels+")", "", diagnosis.NoneBegins, nfdLabels))
			f.Certainty, f.Mends = diagnosis.Likely, []Mend{discover(s, n, until)}
			return f
		}
		f := s.finding(Discovery, Missing, diagnosis.GPUStackNotOnNode, "has no label of node feature discovery, which is not installed: the device plugin is kept off", n.Ref(), "no label "+nfdLabels+"*, and no DaemonSet is node feature discovery's worker", diagnosis.That("keys("+diagnosis.Labels+")", "", diagnosis.NoneBegins, nfdLabels))
		f.Mends = []Mend{discover(s, n, until)}
		return f
	}
	d := sets[0]
	if l := s.part(n, parts.Discovery); l.pod != nil {
		f := l.finding(Discovery, Failed, diagnosis.GPUStackNotOnNode, "has no label of node feature discovery, whose pod there has written none: the device plugin is kept off")
		f.Mends = []Mend{l.mendDiscovery(until)}
		return f
	}
	m := d.Misses(n)
	if m.None() {
		return s.refusedPod(n, d, Discovery)
	}
	f := s.finding(Discovery, KeptOff, diagnosis.GPUStackNotOnNode, none+", whose DaemonSet does not run there: "+d.Text(n, m), d.Ref(), d.Text(n, m), d.Claims(n, m)...)
	f.Mends = []Mend{s.letOn(n, d, m, until)}
	return f
}

func (p *part) mendDiscovery(until string) Mend {
	return Mend{Kind: diagnosis.RepairDeviceStack, Title: "see why node feature discovery writes no labels for " + p.n.Name, Until: until, Risk: diagnosis.LowRisk, Minutes: 5,
		Commands: []string{fmt.Sprintf("kubectl -n %s logs %s%s --tail=50", p.pod.Namespace, p.pod.Name, p.In()), fmt.Sprintf("kubectl -n %s get deploy,pods", p.pod.Namespace)}}
}

func discover(s *Stack, n *view.Node, until string) Mend {
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "install node feature discovery, which labels " + n.Name, Until: until, Risk: diagnosis.LowRisk, Minutes: 5}
	m.Commands = []string{"helm repo add nvidia https://helm.ngc.nvidia.com/nvidia && helm repo update", parts.ReuseOperator(s.w, "") + "--set nfd.enabled=true", "kubectl get node " + n.Name + " --show-labels | tr ',' '\\n' | grep 10de"}
	return m
}

// soon is for a node so young that what is to come may still come.
func (s *Stack) soon(n *view.Node, link Link, who string) *Finding {
	age := s.since(n.CreationTimestamp.Time)
	if n.CreationTimestamp.IsZero() || age >= labelTime {
		return nil
	}
	f := s.finding(link, Starting, diagnosis.GPUStackNotOnNode, "is new: "+who+" is to label it in a few minutes", n.Ref(), "node is "+view.Age(age)+" old")
	f.Mends = []Mend{waitFor(n, "device plugin", driverTime-age)}
	return f
}

func (s *Stack) policyName() string {
	if s.policy == "" {
		return "cluster-policy"
	}
	return s.policy
}

// operatorNamespace is where the GPU Operator makes its DaemonSets; its usual one where it has made
// none.
func (s *Stack) operatorNamespace() string {
	for _, d := range s.kit.Sets(parts.Plugin) {
		if d.OfOperator() {
			return d.Namespace
		}
	}
	return "gpu-operator"
}
