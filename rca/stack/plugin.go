package stack

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// pluginPod: the device plugin has a pod on the node that does not run, and nothing that it
// needs is at fault.
func (s *Stack) pluginPod(n *view.Node, pod *corev1.Pod) *Finding {
	l := s.look(pod)
	if pod.Spec.NodeName == "" {
		f := s.finding(PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, "has its device plugin's pod waiting for room: "+strings.TrimPrefix(l.words, "not scheduled: "), podRef(pod), l.words, l.claims...)
		f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "make room for the device plugin on " + n.Name, Until: "the device plugin of " + n.Name + " has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 5,
			Commands: []string{fmt.Sprintf("kubectl -n %s describe pod %s", pod.Namespace, pod.Name)}}}
		return f
	}
	switch {
	case noRuntime(l.words):
		return s.handler(n, pod, l)
	case strings.Contains(l.where, "driver-install"): // GKE's plugin pod waits for, or runs, the installer
		return s.waitsFor(n, pod, l, Driver, diagnosis.DriverNotReady, driver)
	case l.where == "driver-validation":
		return s.waitsFor(n, pod, l, Driver, diagnosis.DriverNotReady, driver)
	case l.where == "toolkit-validation":
		return s.waitsFor(n, pod, l, Runtime, diagnosis.RuntimeNotConfigured, toolkit)
	case strings.Contains(l.words, "NVML") && (pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName == ""):
		return s.outside(n, pod, "cannot load NVML", orReady(l))
	case l.state != Failed && !l.loops:
		if left := podTime - s.since(l.since); left > 0 {
			f := s.finding(Plugin, Starting, diagnosis.DevicePluginDown, "is starting: its device plugin's pod is "+view.Age(s.since(pod.CreationTimestamp.Time))+" old", podRef(pod), orReady(l), l.claims...)
			f.Mends = []Mend{waitFor(n, "device plugin", left)}
			return f
		}
	case s.bare(n, pod) && !strings.Contains(l.words, "Image") && l.loops:
		return s.outside(n, pod, "crashes", orReady(l))
	}
	if kind, name := absent(l.words); name != "" {
		return s.withoutVolume(pod, l, kind, name)
	}
	if f := s.sharing(n, pod); f != nil && l.loops {
		return f
	}
	f := s.finding(Plugin, Failed, diagnosis.DevicePluginDown, "has GPUs and offers none: its device plugin fails at "+orReady(l), podRef(pod), orReady(l), l.claims...)
	if l.told {
		f.Certainty = diagnosis.Likely
	}
	if l.state != Failed {
		f.Says, f.Certainty = "has GPUs and offers none: its device plugin's pod is not ready: "+orReady(l), s.aged()
	}
	f.Mends = []Mend{s.mendPlugin(n, pod, l)}
	return f
}

// waitsFor: the plugin's init container waits for another part that is nowhere to be seen
// at fault. Where that is Ready, the plugin's pod of before waits for what was written before:
// another one looks again.
func (s *Stack) waitsFor(n *view.Node, pod *corev1.Pod, l look, link Link, cause diagnosis.CauseID, part role) *Finding {
	what := string(part)
	if left := podTime - s.since(pod.CreationTimestamp.Time); left > 0 && !l.loops {
		f := s.finding(link, Starting, cause, "is starting: its device plugin waits for the "+what, podRef(pod), orReady(l), l.claims...)
		f.Mends = []Mend{waitFor(n, "device plugin", left)}
		return f
	}
	f := s.finding(link, Waiting, cause, fmt.Sprintf("has its device plugin waiting for the %s: init container %s", what, orReady(l)), podRef(pod), orReady(l), l.claims...)
	f.Certainty = diagnosis.Likely
	m := s.mendPlugin(n, pod, l)
	m.Title = "see why the " + what + " of " + n.Name + " is not validated"
	m.Commands = append([]string{"kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + "  # nvidia-operator-validator says which part fails"}, m.Commands...)
	f.Mends = []Mend{m}
	if of := s.podOf(n, part); of != nil && s.look(of).state == "" {
		f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(of), "the "+what+" is Ready", s.look(of).claims...))
		f.Mends = []Mend{{Kind: diagnosis.RestartDevicePlugin, Unproven: "whether a new pod of the device plugin sees that the " + what + " is Ready nobody can try on a copy"}, m}
	}
	return f
}

// bare says whether the plugin's pod runs by the node's own container runtime as that is
// configured: no toolkit of the GPU Operator is there, and it names no RuntimeClass.
func (s *Stack) bare(n *view.Node, pod *corev1.Pod) bool {
	name := pod.Spec.RuntimeClassName
	return (name == nil || *name == "") && s.podOf(n, toolkit) == nil && !s.managed(n) && len(n.Facts().Stocks()) == 0 && n.Labels["cloud.google.com/gke-accelerator"] == ""
}

// outside: the plugin finds no GPU where its container is not given any.
func (s *Stack) outside(n *view.Node, pod *corev1.Pod, does, fact string) *Finding {
	f := s.finding(Runtime, Failed, diagnosis.RuntimeNotConfigured, fmt.Sprintf("has a device plugin that %s: its pod names no RuntimeClass, so it sees GPUs only if NVIDIA's is the runtime by default", does), podRef(pod), fact+"; no runtimeClassName", append(s.look(pod).claims, diagnosis.That("spec.runtimeClassName", "", diagnosis.Absent, ""))...)
	f.Certainty = diagnosis.Likely
	if n.Geometry != nil && n.Geometry.Report.Source == nodeprobe.SourceNVML && n.Doubt == "" {
		f.Certainty = diagnosis.Proven // the driver is loaded and shows the GPUs
	}
	name := ""
	if by := metav1.GetControllerOfNoCopy(pod); by != nil {
		name = by.Name
	}
	m := s.configure(n)
	m.Steps = append([]string{"see on the machine that nvidia-smi works: without a driver no runtime helps"}, m.Steps...)
	if s.runtimes["nvidia"] {
		m.Title = "run the device plugin by RuntimeClass nvidia"
		m.Risk = diagnosis.LowRisk
		m.Commands = []string{fmt.Sprintf(`kubectl -n %s patch daemonset %s --type=merge -p '{"spec":{"template":{"spec":{"runtimeClassName":"nvidia"}}}}'`, pod.Namespace, name), fmt.Sprintf("kubectl -n %s rollout status daemonset %s", pod.Namespace, name)}
	} else {
		m.Commands = append(m.Commands, fmt.Sprintf("kubectl -n %s rollout restart daemonset %s", pod.Namespace, name))
	}
	f.Mends = []Mend{m}
	return f
}

// registration: the plugin's pod is Ready, and the node offers nothing.
func (s *Stack) registration(n *view.Node, pod *corev1.Pod) *Finding {
	since := s.since(s.look(pod).since)
	known := false // a key with devices is there: they are unhealthy
	for _, stock := range n.Facts().Stocks() {
		known = known || stock.Capacity > 0
	}
	switch {
	case known && n.Geometry == nil:
		return nil // unhealthy, as far as anything tells
	case since < kubeletTime:
		f := s.finding(Registration, Starting, diagnosis.DevicePluginDown, "is starting: its device plugin is ready for "+view.Age(since)+" and has still to announce the GPUs", podRef(pod), "Ready", s.look(pod).claims...)
		f.Mends = []Mend{waitFor(n, "device plugin", kubeletTime-since)}
		return f
	}
	if s.managed(n) {
		for _, link := range []func(*view.Node) *Finding{s.driver, s.toolkit} {
			if f := link(n); f != nil && f.State != Starting {
				return f
			}
		}
	}
	if f := s.sharing(n, pod); f != nil {
		return f
	}
	if s.bare(n, pod) {
		return s.outside(n, pod, "runs and finds no GPU", "Ready for "+view.Age(since)+", and the node has no key of "+string(view.WholeGPU))
	}
	f := s.finding(Registration, Failed, diagnosis.DevicePluginDown, "has GPUs and offers none, though its device plugin runs", podRef(pod), "Ready for "+view.Age(since)+", and the node offers nothing", s.look(pod).claims...)
	restart := Mend{Kind: diagnosis.RestartDevicePlugin}
	m := s.mendPlugin(n, pod, look{})
	if _, announced := n.Status.Capacity[view.WholeGPU]; announced { // the kubelet knows the name, and of no device
		m.Commands = append(m.Commands, fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host systemctl restart kubelet  # where another pod of the device plugin changes nothing; pods keep running", n.Name))
	}
	if len(n.Facts().Stocks()) > 0 || n.Geometry != nil { // it has worked here, or the driver shows what is there
		f.Mends = []Mend{restart, m}
	} else {
		restart.Unproven = "only its log tells why it announces nothing"
		f.Mends = []Mend{m, restart}
	}
	return f
}

// mendPlugin is where to look, and what to do by what is seen there.
func (s *Stack) mendPlugin(n *view.Node, pod *corev1.Pod, l look) Mend {
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "mend the device plugin of " + n.Name, Until: "the device plugin of " + n.Name + " has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 10,
		Commands: []string{fmt.Sprintf("kubectl -n %s logs %s -c %s --tail=50", pod.Namespace, pod.Name, cmp.Or(l.where, firstContainer(pod))), fmt.Sprintf("kubectl -n %s describe pod %s", pod.Namespace, pod.Name)}}
	switch value := n.Labels[pluginConfigLabel]; {
	case strings.HasPrefix(l.where, "config-manager") && value != "":
		m.Title = fmt.Sprintf("name a config of the device plugin that exists: %s=%s on %s", pluginConfigLabel, value, n.Name)
		m.Commands = append(m.Commands, "kubectl label node "+n.Name+" "+pluginConfigLabel+"-  # the default; or the name of an entry of its ConfigMap")
	case strings.Contains(l.words, "Image"):
		m.Title = "let " + n.Name + " pull the device plugin's image"
	}
	if l.loops && s.mayLackInstances(n) {
		m.Steps = []string{"see what it says: by strategy single it ends where MIG is on and no instance is made, as where MIG was switched on before the GPU Operator came", "let MIG manager onto the node then, which lays the GPUs out"}
		m.Commands = append(m.Commands, "kubectl label node "+n.Name+" "+deploys+"mig-manager=true "+view.LabelMIGConfig+"=all-disabled --overwrite  # where it says so; or all-1g.5gb and the like, as its GPUs are called")
	}
	if m.Unproven == "" && l.where == "" {
		m.Unproven = "only its log tells why it announces nothing"
	}
	return m
}

// mayLackInstances: by strategy single, device plugin and GPU feature discovery both end where MIG is
// on without instances (k8s-device-plugin internal/rm), so nothing labels the node as capable of
// MIG, and MIG manager, which goes by that, is not let on it.
func (s *Stack) mayLackInstances(n *view.Node) bool {
	labeller := s.podOf(n, features)
	return s.strategy == "single" && n.Labels[deploys+"mig-manager"] == "" && n.Labels["nvidia.com/mig.capable"] == "" && labeller != nil && s.look(labeller).loops
}

func firstContainer(p *corev1.Pod) string {
	for _, c := range p.Spec.Containers {
		if isPlugin(c) {
			return c.Name
		}
	}
	if len(p.Spec.Containers) > 0 {
		return p.Spec.Containers[0].Name
	}
	return view.PluginName
}
