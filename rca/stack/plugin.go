package stack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// pluginLink is the device plugin's pod on one node: whether it runs, what keeps it from that, and
// whether the kubelet has heard of GPUs from it. Each of these goes by the same pod and the same look
// at it; that a node has none is answered once, where the link is made.
type pluginLink struct{ part }

// pluginOn is that of the node; nil where it has no pod of the device plugin.
func (s *Stack) pluginOn(n *view.Node) *pluginLink {
	if p := s.part(n, parts.Plugin); p.pod != nil {
		return &pluginLink{p}
	}
	return nil
}

// unready: the device plugin has a pod on the node that does not run, and nothing that it
// needs is at fault.
func (l *pluginLink) unready() *Finding {
	n, pod := l.n, l.pod
	if pod.Spec.NodeName == "" {
		f := l.s.finding(PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, "has its device plugin's pod waiting for room: "+strings.TrimPrefix(l.Words, "not scheduled: "), podRef(pod), l.Words, l.Claims...)
		f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "make room for the device plugin on " + n.Name, Until: "the device plugin of " + n.Name + " has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 5,
			Commands: []string{fmt.Sprintf("kubectl -n %s describe pod %s", pod.Namespace, pod.Name)}}}
		return f
	}
	switch {
	case parts.NoHandler(l.Whole):
		return l.handler()
	case l.absentRuntime() != nil:
		return l.absentRuntime()
	case parts.Mismatched(l.Whole):
		return l.driverless()
	case strings.Contains(l.Whole, containerCLI) && !runtimeItself.MatchString(l.Whole):
		return l.driverless()
	case strings.Contains(l.Whole, containerCLI) && !strings.Contains(l.Whole, "mount error"): // it finds them, and cannot give them
		return l.hookFails()
	case strings.Contains(l.Where, "driver-install"): // GKE's plugin pod waits for, or runs, the installer
		return l.waitsFor(Driver, diagnosis.DriverNotReady, parts.Driver)
	case l.Where == "driver-validation":
		return l.waitsFor(Driver, diagnosis.DriverNotReady, parts.Driver)
	case l.Where == "toolkit-validation":
		return l.waitsFor(Runtime, diagnosis.RuntimeNotConfigured, parts.Toolkit)
	case strings.Contains(l.Whole, "NVML") && (pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName == ""):
		return l.outside("cannot load NVML", l.Text())
	case l.State != parts.Failed && !l.Loops:
		if left := podTime - l.s.since(l.Since); left > 0 {
			f := l.finding(Plugin, Starting, diagnosis.DevicePluginDown, "is starting: its device plugin's pod began "+view.Age(l.s.since(l.s.kit.Begun(pod)))+" ago")
			f.Mends = []Mend{waitFor(n, "device plugin", left)}
			return f
		}
	case l.bare() && !strings.Contains(l.Whole, "Image") && parts.NoCommand(l.Whole) == "" && l.Loops:
		return l.outside("crashes", l.Text())
	}
	if kind, name := parts.Absent(l.Whole); name != "" {
		return l.withoutVolume(kind, name)
	}
	few := l.Loops && parts.FewerThanTwo(l.config().entry) != "" // then it does not come to what it shares by
	if f := l.config().sharing(); f != nil && l.Loops && !few {
		return f
	}
	f := l.finding(Plugin, Failed, diagnosis.DevicePluginDown, "has GPUs and offers none: its device plugin fails at "+l.Text())
	if l.Told {
		f.Certainty = diagnosis.Likely
	}
	if l.State != parts.Failed {
		f.Says, f.Certainty = "has GPUs and offers none: its device plugin's pod is not ready: "+l.Text(), l.s.aged()
	}
	f.Mends = []Mend{l.mend()}
	l.config().unwritten(f)
	if few {
		l.config().tooFewShares(f)
	}
	return f
}

// waitsFor: the plugin's init container waits for another part that is nowhere to be seen
// at fault. Where that is Ready, the plugin's pod of before waits for what was written before:
// another one looks again.
func (l *pluginLink) waitsFor(link Link, cause diagnosis.CauseID, r parts.Role) *Finding {
	what := string(r)
	if left := podTime - l.s.since(l.s.kit.Begun(l.pod)); left > 0 && !l.Loops {
		f := l.finding(link, Starting, cause, "is starting: its device plugin waits for the "+what)
		f.Mends = []Mend{waitFor(l.n, "device plugin", left)}
		return f
	}
	f := l.finding(link, Waiting, cause, fmt.Sprintf("has its device plugin waiting for the %s: init container %s", what, l.Text()))
	f.Certainty = diagnosis.Likely
	m := l.mend()
	m.Title = "see why the " + what + " of " + l.n.Name + " is not validated"
	m.Commands = append([]string{"kubectl get pods -A -o wide --field-selector spec.nodeName=" + l.n.Name + map[bool]string{true: "  # nvidia-operator-validator says which part fails"}[managed(l.n)]}, m.Commands...)
	if fact, set := parts.WithoutPlugin(l.s.w.State.ClusterPolicies); fact != nil && r == parts.Toolkit {
		f.Says, f.Evidence = f.Says+"; "+fact.Fact, append(f.Evidence, *fact)
		m.Title, m.Commands = "have the GPU Operator's toolkit on, or its NRI plugin off", append(m.Commands[1:2:2], set...)
		m.StopsUnknown = true // its pods on every node are made again
	}
	f.Mends = []Mend{m}
	if of := l.s.part(l.n, r); of.pod != nil && of.State == "" {
		f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(of.pod), "the "+what+" is Ready", of.Claims...))
		m.Unproven = "where a new pod of the device plugin announces nothing either, something else keeps it from that"
		f.Mends = []Mend{{Kind: diagnosis.RestartDevicePlugin, Unproven: "whether a new pod of the device plugin sees that the " + what + " is Ready nobody can try on a copy"}, m}
		if v := l.s.part(l.n, parts.Validator); v.pod != nil && v.State == parts.Failed { // another of the plugin's would wait as well
			f.Says += "; its validator fails at " + v.Text()
			f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(v.pod), v.Text(), v.Claims...))
			m.Commands = slices.Concat([]string{fmt.Sprintf("kubectl -n %s describe pod %s", v.pod.Namespace, v.pod.Name)}, parts.NotLoaded(v.Whole, l.n.Name, l.s.kit.Pod(l.n, parts.Driver)), m.Commands)
			if libc := homes.NewerLibc(v.Whole); libc != "" && l.s.kit.Pod(l.n, parts.Driver) == nil { // the machine's image has a driver, and with it a toolkit
				m = l.withoutToolkit(libc, m)
			}
			f.Mends = []Mend{m}
		}
		if r == parts.Toolkit && strings.Contains(l.Whole, "unresolvable CDI") { // the toolkit describes the GPUs when it starts
			m.Title, m.Risk, m.Stops = "have the container toolkit of "+l.n.Name+" describe its GPUs again (CDI): make its pod again", diagnosis.LowRisk, []*corev1.Pod{of.pod}
			m.Commands = append([]string{fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again, and it writes /var/run/cdi when it starts", of.pod.Namespace, of.pod.Name)}, m.Commands...)
			f.Mends = []Mend{m}
		} else if l.Loops && r == parts.Toolkit && len(f.Mends) > 1 { // it has looked again and again by itself
			m.Steps, m.Commands = homes.TakeIn(l.n, of.pod)
			m.Unproven = "what the container runtime has taken in is in no object"
			f.Mends = []Mend{m}
		}
	}
	return f
}

// withoutToolkit leaves the container runtime to the machine's own toolkit: the operator's does not run on its system.
func (l *pluginLink) withoutToolkit(libc string, m Mend) Mend {
	steps, commands := homes.WithoutToolkit(l.s.policyName())
	m.Title = fmt.Sprintf("switch the GPU Operator's container toolkit off (toolkit.enabled=false): it needs %s, which the system of %s does not have", libc, l.n.Name)
	m.Steps, m.Commands, m.Risk, m.StopsUnknown = steps, append(commands, m.Commands...), diagnosis.MediumRisk, true
	return m
}

// bare says whether the plugin's pod runs by the node's own container runtime as that is
// configured: it names no RuntimeClass, and no GPU Operator made it.
func (l *pluginLink) bare() bool {
	d := l.s.kit.SetOf(l.pod)
	return ptr.Deref(l.pod.Spec.RuntimeClassName, "") == "" && (l.alone() || managed(l.n) && d != nil && !d.OfOperator() && len(l.n.Facts().Stocks()) == 0)
}

// alone says whether nothing but the plugin itself is of NVIDIA's stack on the node.
func (l *pluginLink) alone() bool {
	return l.s.kit.Pod(l.n, parts.Toolkit) == nil && !managed(l.n) && len(l.n.Facts().Stocks()) == 0 && l.n.Labels[view.LabelGKE] == ""
}

// onJetson: there the plugin sees the GPU by what NVIDIA's container toolkit mounts, from release 1.11 on (k8s-device-plugin issue 377).
func (l *pluginLink) onJetson() *Finding {
	f := l.finding(Runtime, Failed, diagnosis.RuntimeNotConfigured, "is a Jetson, whose device plugin runs and announces nothing: it sees the GPU by what the machine's NVIDIA container toolkit mounts, and an old one knows no Jetson")
	f.Certainty, f.Mends = diagnosis.Likely, []Mend{l.s.configure(l.n)}
	f.Mends[0].Title, f.Mends[0].Commands = "bring the NVIDIA container toolkit of "+l.n.Name+" up to date (1.11 or later)", []string{fmt.Sprintf("kubectl -n %s logs %s --tail=50  # does it call the platform one it does not know", l.pod.Namespace, l.pod.Name), "# on the machine:", "dpkg -l nvidia-container-toolkit; cat /etc/nv_tegra_release"}
	return f
}

// outside: the plugin finds no GPU where its container is not given any.
func (l *pluginLink) outside(does, fact string) *Finding {
	n, pod := l.n, l.pod
	f := l.s.finding(Runtime, Failed, diagnosis.RuntimeNotConfigured, fmt.Sprintf("has a device plugin that %s: its pod names no RuntimeClass, so it sees GPUs only if NVIDIA's is the runtime by default", does), podRef(pod), fact+"; no runtimeClassName", append(l.Claims, diagnosis.That("spec.runtimeClassName", "", diagnosis.Absent, ""))...)
	f.Certainty = diagnosis.Likely
	if n.Geometry != nil && n.Geometry.Report.Source == nodeprobe.SourceNVML && n.Doubt == "" {
		f.Certainty = diagnosis.Proven // the driver is loaded and shows the GPUs
	}
	name := ""
	if by := metav1.GetControllerOfNoCopy(pod); by != nil {
		name = by.Name
	}
	if twin := l.twin(); twin != nil {
		f.Says = fmt.Sprintf("has a device plugin that %s, while that of %s, which is the same on a node alike, finds them: it is this machine that hands it none", does, twin.Name)
		f.Evidence = append(f.Evidence, diagnosis.Fact(twin.Ref(), "has GPUs announced there by "+pod.Namespace+"/"+name, diagnosis.That("status.nodeInfo.containerRuntimeVersion", "", diagnosis.Is, twin.Status.NodeInfo.ContainerRuntimeVersion), diagnosis.That("status.nodeInfo.osImage", "", diagnosis.Is, twin.Status.NodeInfo.OSImage)))
		f.Mends = []Mend{l.asOnTwin(twin)}
		return f
	}
	m := l.s.configure(n)
	byImage, _ := homes.ForGPUs(n) // whose runtime is NVIDIA's by default
	if byImage == nil {
		m.Steps = append([]string{"see on the machine that nvidia-smi works: without a driver no runtime helps"}, m.Steps...)
	}
	if l.State != "" {
		m.Steps = append([]string{"see what it says: where it loads NVML, or does not know the platform, no runtime is what it lacks"}, m.Steps...)
	}
	d := l.s.kit.SetOf(pod)
	switch {
	case byImage != nil:
		d = nil // another machine has another pod
	case l.s.runtimes["nvidia"]:
		m.Title = "run the device plugin by RuntimeClass nvidia"
		m.Risk = diagnosis.LowRisk
		m.Commands = []string{fmt.Sprintf(`kubectl -n %s patch daemonset %s --type=merge -p '{"spec":{"template":{"spec":{"runtimeClassName":"nvidia"}}}}'`, pod.Namespace, name), fmt.Sprintf("kubectl -n %s rollout status daemonset %s", pod.Namespace, name)}
	default:
		m.Commands = append(m.Commands, fmt.Sprintf("kubectl -n %s rollout restart daemonset %s", pod.Namespace, name))
	}
	if d != nil {
		m.Stops = d.Rolled(l.s.w)
	}
	previous := ""
	if l.State != "" {
		previous = " --previous"
	}
	m.Commands = append([]string{fmt.Sprintf("kubectl -n %s logs %s%s --tail=30  # is it NVML that it does not find, or does the kubelet not take it in", pod.Namespace, pod.Name, previous)}, m.Commands...)
	f.Mends = []Mend{m}
	return f
}

// registration: the plugin's pod is Ready, and the node offers nothing.
func (l *pluginLink) registration() *Finding {
	s, n := l.s, l.n
	since, known := s.since(l.Since), announces(n) && n.Geometry == nil // a key with devices is there
	if since < kubeletTime && !known {
		f := s.finding(Registration, Starting, diagnosis.DevicePluginDown, "is starting: its device plugin is ready for "+view.Age(since)+" and has still to announce the GPUs", podRef(l.pod), "Ready", l.Claims...)
		f.Mends = []Mend{waitFor(n, "device plugin", kubeletTime-since)}
		return f
	}
	for _, link := range needs(s, n) {
		if f := link(n); f != nil && (f.State == Failed || f.State != Starting && !known) {
			return f
		}
	}
	if known {
		return nil // its devices are unhealthy, as far as anything tells
	}
	if f := l.unheard(); f != nil {
		return f
	}
	if f := l.early(); f != nil {
		return f
	}
	if f := l.config().sharing(); f != nil {
		return f
	}
	if f := l.undriven(); f != nil {
		return f
	}
	if l.bare() {
		return l.outside("runs and finds no GPU", "Ready for "+view.Age(since)+", and the node has no key of "+string(view.WholeGPU))
	}
	if l.alone() && view.OfJetson(n.Status.NodeInfo.KernelVersion) {
		return l.onJetson()
	}
	f := s.finding(Registration, Failed, diagnosis.DevicePluginDown, "has GPUs and offers none, though its device plugin runs", podRef(l.pod), "Ready for "+view.Age(since)+", and the node offers nothing", l.Claims...)
	restart, m := Mend{Kind: diagnosis.RestartDevicePlugin}, l.mend()
	m.Commands = append(m.Commands, fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host nvidia-smi -L  # where it calls driver and library of different versions, a reboot loads the module that was installed since", n.Name))
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

// mend is where to look, and what to do by what is seen there.
func (l *pluginLink) mend() Mend {
	n, pod := l.n, l.pod
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "mend the device plugin of " + n.Name, Until: "the device plugin of " + n.Name + " has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 10,
		Commands: []string{fmt.Sprintf("kubectl -n %s logs %s -c %s --tail=50", pod.Namespace, pod.Name, cmp.Or(l.Where, parts.PluginContainer(pod))), fmt.Sprintf("kubectl -n %s describe pod %s", pod.Namespace, pod.Name)}}
	switch value := n.Labels[pluginConfigLabel]; {
	case value != "" && l.managesConfig():
		m.Title = fmt.Sprintf("name a config of the device plugin that exists: %s=%s on %s", pluginConfigLabel, value, n.Name)
		m.Commands = append(m.Commands, "kubectl label node "+n.Name+" "+pluginConfigLabel+"-  # the default; or the name of an entry of its ConfigMap")
	case strings.Contains(l.Whole, "Image"):
		l.pull(&m, "device plugin")
	case parts.NoCommand(l.Whole) != "":
		m.Title = "correct the command of the device plugin on " + n.Name + ": its image has no program " + parts.NoCommand(l.Whole)
		m.Commands = append([]string{parts.EditSet(pod) + "  # spec.template.spec.containers[].command and args"}, m.Commands[1:]...)
		if d := l.s.kit.SetOf(pod); d != nil {
			m.Stops = d.Rolled(l.s.w)
		}
	case strings.Contains(l.Whole, parts.NotPermitted):
		m.Title = "let the device plugin read the GPUs of " + n.Name + " that are in MIG mode: they are not broken, its container lacks the right to"
		m.Commands = append(m.Commands, parts.Permit(pod, l.s.kit.SetOf(pod))...)
	}
	if l.Loops && l.s.mayLackInstances(n) {
		m.Steps = []string{"see what it says: by strategy single it ends where MIG is on and no instance is made, as where MIG was switched on before the GPU Operator came", "let MIG manager onto the node then, which lays the GPUs out"}
		m.Commands = append(m.Commands, "kubectl label node "+n.Name+" "+parts.Deploys+"mig-manager=true "+view.LabelMIGConfig+"=all-disabled --overwrite  # where it says so; or all-1g.5gb and the like, as its GPUs are called")
	}
	switch {
	case l.Told && m.Unproven == "": // it has not begun: a log there is none
		m.Title, m.Unproven = "see why the pod of the device plugin is not begun on "+n.Name+", by its Events", "once it is begun, only its log tells what it announces"
		m.Commands = m.Commands[1:]
		if strings.Contains(l.Whole, "network for sandbox") {
			m.Commands = append(m.Commands, "kubectl get pods -A -o wide --field-selector spec.nodeName="+n.Name+"  # its network's (aws-node, cilium, calico): its log says why it gives no address; on AWS the node's subnet may have none left")
		}
	case m.Unproven == "" && l.Where == "":
		m.Unproven = "only its log tells why it announces nothing"
	}
	return m
}

// mayLackInstances: by strategy single, device plugin and GPU feature discovery both end where MIG is
// on without instances (k8s-device-plugin internal/rm), so nothing labels the node as capable of
// MIG, and MIG manager, which goes by that, is not let on it. The strategy is that of the GPU Operator's own plugin.
func (s *Stack) mayLackInstances(n *view.Node) bool {
	return s.strategy == "single" && !s.plain && n.Labels[parts.Deploys+"mig-manager"] == "" && n.Labels["nvidia.com/mig.capable"] == "" && s.part(n, parts.Features).Loops
}
