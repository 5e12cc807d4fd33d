package kubelet

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// noHandler is how runtimes refuse a handler that they do not have: containerd
// (internal/cri/config), CRI-O (pkg/config) and cri-dockerd.
var noHandler = regexp.MustCompile(`no runtime for "([^"]+)" is configured|failed to find runtime handler (\S+) from|RuntimeHandler "([^"]+)" not supported`)

// sandbox: the runtime cannot make the pod's sandbox.
func (s stopped) sandbox() *Stop {
	m := noHandler.FindStringSubmatch(s.says)
	if port := portless.FindStringSubmatch(s.says); port != nil {
		return s.kata(port[1])
	}
	if m == nil {
		return s.otherwise("its sandbox")
	}
	node, handler := s.pod.Spec.NodeName, m[1]+m[2]+m[3]
	names := "which the pod asks for"
	class := s.runtimeClass()
	if class != nil {
		names = "which RuntimeClass " + class.Name + " names"
	}
	stop := s.stop(diagnosis.RuntimeNotConfigured, diagnosis.RepairDeviceStack, fmt.Sprintf("the container runtime of %s has no handler %q, %s", node, handler, names))
	if class != nil {
		stop.Evidence = s.handled(class)
	}
	stop.Title, stop.Words = fmt.Sprintf("configure NVIDIA's runtime on %s, as handler %q", node, handler), fmt.Sprintf("%s has no runtime %q", node, handler)
	if !strings.Contains(handler, "nvidia") {
		stop.Title = fmt.Sprintf("configure a runtime on %s with handler %q, or name a RuntimeClass that it has", node, handler)
		stop.Commands = []string{"kubectl get runtimeclasses"}
	}
	stop.mended(s, homes.Configure, "what the machine's runtime is configured with is in no object")
	return stop
}

// runtimeClass is that of the pod; nil where it names none, or one that was not read.
func (s stopped) runtimeClass() *nodev1.RuntimeClass {
	for _, r := range s.w.State.RuntimeClasses {
		if name := s.pod.Spec.RuntimeClassName; name != nil && r.Name == *name {
			return r
		}
	}
	return nil
}

// handled shows which handler the pod comes to by its class.
func (s stopped) handled(class *nodev1.RuntimeClass) []diagnosis.Evidence {
	return []diagnosis.Evidence{diagnosis.Fact("RuntimeClass/"+class.Name, "handler: "+class.Handler, diagnosis.That("handler", "", diagnosis.Is, class.Handler), diagnosis.That("spec.runtimeClassName", "", diagnosis.Is, class.Name).Of(view.PodRef(s.pod)))}
}

// driverless are the words of NVIDIA's container library where the kernel's driver does not answer
// (NVIDIA/libnvidia-container).
var driverless = regexp.MustCompile(`driver not loaded|libnvidia-ml\.so|driver error: failed to process request`)

// container: the sandbox is there, and the runtime cannot make or start a container in it.
func (s stopped) container() *Stop {
	node := s.pod.Spec.NodeName
	m, port := unresolved.FindStringSubmatch(s.says), portless.FindStringSubmatch(s.says)
	switch {
	case port != nil:
		return s.kata(port[1])
	case m != nil:
		return s.cdi(m[1])
	case parts.Mismatched(s.says):
		stop := s.stop(diagnosis.DriverNotReady, diagnosis.RebootNode, "NVIDIA's driver does not answer the container runtime of "+node+": its libraries are not of the version of the module that is loaded")
		stop.Title, stop.Words = "reboot "+node+": "+parts.Mismatch, "the driver does not answer"
		stop.Risk, stop.Minutes, stop.Unproven = diagnosis.HighRisk, 15, "a reboot cannot be tried on a copy"
		if n := s.w.Nodes[node]; n != nil { // who has not begun there does not stop
			stop.Drained, stop.Commands = slices.DeleteFunc(view.Drained(n), func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodPending }), parts.Reboot(n)
		}
		return stop
	case driverless.MatchString(s.says):
		stop := s.stop(diagnosis.DriverNotReady, diagnosis.RepairDeviceStack, "NVIDIA's driver does not answer the container runtime of "+node)
		stop.Title, stop.Words = "have NVIDIA's driver of "+node+" answer again", "the driver does not answer"
		stop.mended(s, func(*view.Node) []string {
			return []string{"# on the machine:", "nvidia-smi; lsmod | grep nvidia; dmesg | grep -i -e nvrm -e xid | tail -20"}
		}, "what the driver answers on the machine is in no object")
		return stop
	case homes.Lacks(s.says) != "":
		return s.program(homes.Lacks(s.says))
	case s.limited() != nil:
		return s.starved()
	case hookItself.MatchString(s.says):
		return s.hook()
	case strings.Contains(s.says, "nvidia-container") || strings.Contains(s.says, "libnvidia-container"):
		stop := s.stop(diagnosis.RuntimeNotConfigured, diagnosis.RepairDeviceStack, "NVIDIA's container runtime fails on "+node)
		stop.Title, stop.Words = "mend NVIDIA's container runtime on "+node, "NVIDIA's runtime fails"
		stop.mended(s, s.configure, "what NVIDIA's runtime finds on the machine is in no object")
		return stop
	}
	return s.otherwise("its container")
}

// mended completes a stop with what mends the machine.
func (s *Stop) mended(of stopped, machine func(*view.Node) []string, unproven string) {
	s.Risk, s.Minutes, s.Unproven = diagnosis.MediumRisk, 10, unproven
	s.StopsUnknown = true // a runtime that restarts leaves containers be, but not every one does
	if n := of.w.Nodes[of.pod.Spec.NodeName]; n != nil {
		s.Commands = append(s.Commands, machine(n)...)
	}
	s.Commands = append(s.Commands, of.describe()+"  # the kubelet tries again by itself")
}

// ofNetwork are the words of a sandbox that got no network (pkg/cri of containerd, ocicni).
var ofNetwork = regexp.MustCompile(`(?i)network|\bcni\b`)

// otherwise: the catalogue has no cause for what the words say.
func (s stopped) otherwise(what string) *Stop {
	node := s.pod.Spec.NodeName
	stop := s.stop(diagnosis.Unknown, diagnosis.Manual, fmt.Sprintf("it has its node: the kubelet of %s cannot begin %s", node, what))
	stop.Words, stop.Title = "its kubelet cannot begin it", fmt.Sprintf("see on %s why the kubelet cannot begin %s: %s", node, what, view.Told(s.quote(), 60))
	stop.Unproven = "what the kubelet, the runtime and the network's plugin say on the machine is in no object"
	look := "kubectl get pods -A -o wide --field-selector spec.nodeName=" + node
	if ofNetwork.MatchString(s.says) {
		look += "  # do the network's own pods run there?"
	}
	units := "kubelet -u containerd"
	if n := s.w.Nodes[node]; n != nil {
		units = homes.Units(n)
	}
	stop.Commands = []string{s.describe(), look, "# on the machine: journalctl -u " + units + " --since -10min"}
	return stop
}
