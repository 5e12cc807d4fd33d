package stack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

const driverManager = "k8s-driver-manager"

// driverLink is the link that the kernel's driver is, on one node. Its upgrade, its kernel, its own pod
// and, where there is none, what keeps it off all go by the same node, pod and look at that: they are
// found once, and not handed from one question to the next.
type driverLink struct{ part }

func (s *Stack) driverOn(n *view.Node) *driverLink { return &driverLink{s.part(n, parts.Driver)} }

// driver is what is the matter with that link; nil where it is whole or the machine's own.
func (s *Stack) driver(n *view.Node) *Finding { return s.driverOn(n).broken() }

func (l *driverLink) broken() *Finding {
	if f := l.upgrading(); f != nil {
		return f
	}
	value, paused := l.n.Labels[DeployDriver], strings.Contains(l.n.Labels[deployPlugin], pausedForNew)
	if l.pod == nil {
		if paused || strings.Contains(value, pausedForNew) {
			return l.paused()
		}
		if f := l.unchosen(value); f != nil {
			return f
		}
		if value == "pre-installed" || value == "false" || len(l.s.kit.Sets(parts.Driver)) == 0 {
			return l.ofHost()
		}
		return l.keptOff()
	}
	took := l.s.since(l.Since)
	switch {
	case l.State == "" && paused:
		return l.paused()
	case l.State == "":
		return nil
	case l.Where == driverManager && (l.State == parts.Failed || l.Loops || took > podTime):
		if holders := parts.Users(l.n); len(holders) > 0 {
			return l.blocked(holders)
		}
		if left := l.undead(); len(left) > 0 {
			return l.awaits(left)
		}
	}
	if l.State != parts.Failed && !l.Loops {
		if left := driverTime - took; left > 0 {
			f := l.finding(Driver, Starting, diagnosis.DriverNotReady, fmt.Sprintf("is starting: its driver is being loaded for %s, which takes up to %s", view.Age(took), view.Age(driverTime)))
			f.Mends = []Mend{waitFor(l.n, "driver", left)}
			return f
		}
	}
	f := l.finding(Driver, Failed, diagnosis.DriverNotReady, "has no driver: its driver's pod fails at "+l.Text())
	if l.State != parts.Failed && !l.Loops {
		f.Says = fmt.Sprintf("has no driver: its driver's pod is not ready after %s, where %s are normal", view.Age(took), view.Age(driverTime))
		f.Certainty = l.s.aged()
	}
	f.Mends = []Mend{l.mend()}
	if l.awaitsNetworkDriver() {
		l.behindNetworkDriver(f)
		return f
	}
	if homes.Talos(l.n.Status.NodeInfo.OSImage) {
		l.ofImage(f)
		return f
	}
	if system := l.system(); system != "" && strings.Contains(l.Whole, "Image") {
		l.unpublished(f, system)
		return f
	}
	l.heldBefore(f)
	l.forAnotherKernel(f)
	return f
}

// undead are the pods with GPUs on the node that should have ended long ago and are still there:
// deletionTimestamp is when they had to be gone. The driver's manager evicts pods with GPUs, and
// waits until they are (k8s-driver-manager cmd/driver-manager/main.go, gpu-operator issue 566).
func (l *driverLink) undead() []*corev1.Pod {
	return slices.DeleteFunc(parts.Asking(l.n, view.IsGPU), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp == nil || view.Leaves(p, l.s.w.State.Now)
	})
}

// awaits: the driver is not loaded before pods have left that do not.
func (l *driverLink) awaits(left []*corev1.Pod) *Finding {
	ended := "has ended, which is overdue by " + view.Age(l.s.since(left[0].DeletionTimestamp.Time))
	if len(left) > 1 {
		ended = "have ended, which are overdue"
	}
	f := l.finding(Driver, Waiting, diagnosis.DriverNotReady, "cannot load its driver before "+view.PodList(left)+" "+ended)
	f.Certainty = diagnosis.Likely // what its manager waits for is in its log alone; newer ones leave pods alone where no driver is loaded
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "end " + view.PodList(left) + " on " + l.n.Name + " by force: its driver's manager waits for that", Risk: diagnosis.MediumRisk, Minutes: 10, Stops: left,
		Until: "the driver of " + l.n.Name + " is loaded and its device plugin has announced its GPUs",
		Steps: []string{"see that nothing of it runs on the node any more: the API server forgets a pod that is deleted by force, whether or not its processes and volumes are gone"}}
	for _, p := range left {
		at := fmt.Sprintf("-n %s", p.Namespace)
		f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(p), "is being deleted, on "+l.n.Name, diagnosis.That("spec.nodeName", "", diagnosis.Is, l.n.Name), diagnosis.That("metadata.deletionTimestamp", "", diagnosis.Exists, "")))
		m.Commands = append(m.Commands, fmt.Sprintf("kubectl %s describe pod %s  # what its kubelet says of it", at, p.Name))
		if len(p.Finalizers) > 0 {
			m.Commands = append(m.Commands, fmt.Sprintf(`kubectl %s patch pod %s --type=merge -p '{"metadata":{"finalizers":null}}'  # now: %s`, at, p.Name, strings.Join(p.Finalizers, ", ")))
		}
		m.Commands = append(m.Commands, fmt.Sprintf("kubectl %s delete pod %s --grace-period=0 --force", at, p.Name))
	}
	f.Mends = []Mend{m}
	return f
}

// heldBy claims of each holder that it runs on the node.
func heldBy(n *view.Node, holders []*corev1.Pod) []diagnosis.Claim {
	out := make([]diagnosis.Claim, len(holders))
	for i, p := range holders {
		out[i] = diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name).Of(podRef(p))
	}
	return out
}

// blocked: the driver cannot be unloaded, for pods of users hold it.
func (l *driverLink) blocked(holders []*corev1.Pod) *Finding {
	f := l.finding(Driver, Waiting, diagnosis.DriverNotReady, "cannot load its driver again while "+view.CountOf(len(holders), "pod")+" of users "+parts.Hold(len(holders))+" the old one")
	f.Evidence = append(f.Evidence, diagnosis.Fact(l.n.Ref(), "GPUs are held there by "+view.PodList(holders), heldBy(l.n, holders)...))
	until := "the driver of " + l.n.Name + " is loaded and its device plugin has announced its GPUs"
	f.Mends = []Mend{
		{Kind: diagnosis.EvictPods, Title: "evict " + view.PodList(holders) + " from " + l.n.Name + ", so that its driver can be loaded again", Until: until, Risk: diagnosis.MediumRisk, Minutes: 10, Victims: holders},
		rebootMend(l.n, ": no module is loaded then", until, "a reboot cannot be tried on a copy"),
	}
	byController(l.n, holders, until, f)
	return f
}

func rebootMend(n *view.Node, why, until, unproven string) Mend {
	return Mend{Kind: diagnosis.RebootNode, Title: "reboot " + n.Name + why, Until: until, Risk: diagnosis.HighRisk, Minutes: 15, Unproven: unproven, Commands: parts.Reboot(n)}
}

// afterUpgrade has the modules loaded that go with what was installed since.
func afterUpgrade(n *view.Node, until string) Mend {
	return rebootMend(n, ", where its driver was upgraded: the modules from before stay loaded until then", until, "whether its driver was upgraded under the modules that are loaded is in no object")
}

// paused: the driver's clients wait, and the driver itself is whole or not to be seen.
func (l *driverLink) paused() *Finding {
	n := l.n
	what, key := "device plugin", deployPlugin
	if !strings.Contains(n.Labels[key], pausedForNew) {
		what, key = "driver", DeployDriver
	}
	f := l.s.finding(Driver, Paused, diagnosis.DriverNotReady, fmt.Sprintf("has its %s paused for a change of the driver: label %s=%s", what, key, n.Labels[key]), n.Ref(), "label "+key+"="+n.Labels[key], n.Labelled(key)...)
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "end the driver's change on " + n.Name, Until: "the device plugin of " + n.Name + " has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 5,
		Steps: []string{"see that no driver's pod is at work there", "let the paused parts back"},
		Commands: append([]string{"kubectl get pods -A -l app.kubernetes.io/component=nvidia-driver -o wide --field-selector spec.nodeName=" + n.Name},
			unpause(n)...)}}
	return f
}

// unpause sets the labels back that stand for paused parts.
func unpause(n *view.Node) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if strings.HasPrefix(key, parts.Deploys) && strings.Contains(n.Labels[key], pausedBy) {
			out = append(out, "kubectl label node "+n.Name+" "+key+"=true --overwrite")
		}
	}
	return out
}

// ofHost: no pod loads a driver here; that it is missing shows where the toolkit waits
// for it.
func (l *driverLink) ofHost() *Finding {
	s, n := l.s, l.n
	for _, r := range []parts.Role{parts.Toolkit, parts.Validator} {
		p := s.part(n, r)
		if p.pod == nil || p.Where != "driver-validation" || p.State == "" {
			continue
		}
		if left := podTime - s.since(s.kit.Begun(p.pod)); left > 0 && !p.Loops {
			return nil
		}
		if n.TalosDriver() != "" {
			return p.unvalidated()
		}
		why, mend := "nothing loads one there", fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"driver":{"enabled":true}}}'`, s.policyName())
		label := n.Labels[DeployDriver] // by the operator's driver manager too, where it once saw one on the machine
		kept := label != "" && label != "true" && len(s.kit.Sets(parts.Driver)) > 0
		if kept {
			why, mend = fmt.Sprintf("label %s=%s keeps the operator's off", DeployDriver, label), fmt.Sprintf("kubectl label node %s %s=true --overwrite  # the operator loads one, where none is installed on the machine", n.Name, DeployDriver)
		}
		says := "has no driver: " + why + ", and the machine has none that works"
		if label == "pre-installed" { // it may have one, of a release that the operator's does not take
			if !kept {
				why = "the machine has its own, by label " + DeployDriver + "=" + label
			}
			says = "has no driver that the GPU Operator's validation accepts: " + why
		}
		f := s.finding(Driver, Missing, diagnosis.DriverNotReady, says, podRef(p.pod), "waits in "+p.Text(), p.Claims...)
		if kept || label == "pre-installed" {
			f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "label "+DeployDriver+"="+label, n.Labelled(DeployDriver)...))
		}
		f.Certainty = diagnosis.Likely
		until := "the driver of " + n.Name + " is loaded and its device plugin has announced its GPUs"
		f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "give " + n.Name + " a driver", Until: until, Risk: diagnosis.MediumRisk, Minutes: 15,
			Steps:    []string{"see what nvidia-smi says on the machine: of a version mismatch, its packages were upgraded under the modules that are loaded, and a reboot loads the new ones", "where there is no driver, install NVIDIA's, or have the GPU Operator do it"},
			Commands: []string{"kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host nvidia-smi", mend}}}
		if label == "pre-installed" { // it had one
			f.Mends[0].Title = "see why driver-validation accepts no driver of the machine of " + n.Name + ", or give it one"
			f.Mends[0].Steps = append([]string{"see what driver-validation says"}, f.Mends[0].Steps...)
			f.Mends[0].Steps[len(f.Mends[0].Steps)-1] = "where nvidia-smi works and the validation still fails, take a driver release that the GPU Operator's supports, or a newer GPU Operator; where there is no driver, install NVIDIA's, or have the GPU Operator do it"
			if !kept {
				f.Mends[0].Commands = f.Mends[0].Commands[:1] // the operator is not to put another over it
			}
			f.Mends[0].Commands = slices.Insert(f.Mends[0].Commands, 0, fmt.Sprintf("kubectl -n %s logs %s -c driver-validation --tail=30", p.pod.Namespace, p.pod.Name))
			f.Mends = append(f.Mends, afterUpgrade(n, until))
		}
		return f
	}
	return nil
}

// keptOff: the driver's DaemonSet is there, and has no pod on the node.
func (l *driverLink) keptOff() *Finding {
	s, n := l.s, l.n
	var best *parts.Set
	least := parts.Misses{}
	for _, d := range s.kit.Sets(parts.Driver) {
		m := d.Misses(n)
		if m.None() {
			return s.refusedPod(n, d, Driver)
		}
		if best == nil || m.Count() < least.Count() {
			best, least = d, m
		}
	}
	text := best.Text(n, least)
	cause := diagnosis.DriverNotReady
	if len(least.Taints) > 0 {
		cause = diagnosis.GPUStackNotOnNode
	}
	f := s.finding(Driver, KeptOff, cause, fmt.Sprintf("has no driver: %s/%s does not run there: %s", best.Namespace, best.Name, text), best.Ref(), text, best.Claims(n, least)...)
	m := s.letOn(n, best, least, "the driver of "+n.Name+" is loaded and its device plugin has announced its GPUs")
	if again := l.unwritten(least, m.Until); again != nil {
		m = *again
	} else if slices.ContainsFunc(least.Labels, func(label string) bool { return strings.HasPrefix(label, nfdLabels) }) {
		m.Title, m.Commands = "have a driver made for the kernel and OS of "+n.Name, []string{"kubectl get nvidiadrivers -o yaml", "kubectl get node " + n.Name + " -o jsonpath='{.status.nodeInfo.kernelVersion} {.status.nodeInfo.osImage}'", "# set usePrecompiled: false, or add an NVIDIADriver whose image exists for that kernel"}
		m.Unproven = "which drivers exist for its kernel cannot be read here"
	}
	f.Mends = []Mend{m}
	return f
}

// mend is where to look, and what to do by what the pod says.
func (l *driverLink) mend() Mend {
	n, pod := l.n, l.pod
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "mend the driver of " + n.Name, Until: "the driver of " + n.Name + " is loaded and its device plugin has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 15,
		Commands: []string{fmt.Sprintf("kubectl -n %s logs %s -c %s --tail=50", pod.Namespace, pod.Name, cmp.Or(l.Where, "nvidia-driver-ctr")), fmt.Sprintf("kubectl -n %s describe pod %s", pod.Namespace, pod.Name)}}
	if _, _, _, barred := parts.Barred(pod, "", l.Whole); barred && strings.Contains(l.Whole, "Image") {
		l.pull(&m, "driver")
	} else if parts.Precompiled(pod, l.s.w) && strings.Contains(l.Whole, "Image") {
		m.Title = "have the driver of " + n.Name + " built on the node: none is precompiled for its kernel " + n.Status.NodeInfo.KernelVersion + " by that name"
		m.Steps = []string{"see which kernels the driver is precompiled for: the image is named by version, kernel and OS", "have it built on the nodes instead, by its full version (a precompiled one is named by its branch alone); or start the node with a kernel that there is one for" + l.elsewhere()}
		m.Commands = []string{m.Commands[1], "kubectl get node " + n.Name + " -o jsonpath='{.status.nodeInfo.kernelVersion} {.status.nodeInfo.osImage}'",
			l.set(`"usePrecompiled":false,"version":"VERSION"`) + "  # VERSION: as 580.95.05; of every node that it serves"}
		m.StopsUnknown = true // those that have a driver are upgraded to it, and GPU pods leave for that
	} else if strings.Contains(l.Whole, "Image") {
		m.Title = "name a driver image that exists for the OS and kernel of " + n.Name
		m.Steps = []string{"no image is published for every pair of driver version and OS: choose a version that is, or build one", "where there is none: a driver of the machine's own, and the GPU Operator's off (spec.driver.enabled: false)"}
		m.Commands = append(m.Commands[1:], "kubectl get node "+n.Name+" -o jsonpath='{.status.nodeInfo.kernelVersion} {.status.nodeInfo.osImage}'",
			l.set(`"version":"VERSION"`))
		m.StopsUnknown = true
	} else if l.Where == driverManager && (l.State == parts.Failed || l.Loops) && len(parts.Users(n)) == 0 {
		m.Title = "see what keeps the driver's modules in use on " + n.Name + ": its manager fails, and no pod there has a GPU"
		m.Steps = []string{"see what it says, and who has the modules: a driver of the machine's own and what uses that (a display, a daemon); nouveau, which the system brings, is to be blacklisted, and the node started again", "keep that driver, and have the GPU Operator install none there; or stop what uses it, take it off the machine, and start that again"}
		m.Commands = append(m.Commands[:1], "kubectl debug node/"+n.Name+" -it --image=busybox -- chroot /host sh -c 'lsmod | grep -e nvidia -e nouveau; cat /proc/driver/nvidia/version; fuser -v /dev/nvidia*'",
			fmt.Sprintf("kubectl label node %s %s=pre-installed --overwrite  # to keep the machine's own", n.Name, DeployDriver))
	} else {
		m.Commands = slices.Concat(parts.NoDevices(l.Whole, n.Name), m.Commands, []string{fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again, with what was changed", pod.Namespace, pod.Name)})
	}
	return m
}

// elsewhere names a kernel that a driver is precompiled for: another node runs it, and has its driver.
func (l *driverLink) elsewhere() string {
	for _, n := range l.s.w.SortedNodes() {
		if of, runs := l.s.part(n, parts.Driver), n.Status.NodeInfo.KernelVersion; of.pod != nil && of.State == "" && runs != l.n.Status.NodeInfo.KernelVersion {
			return ", as " + runs + ", which " + n.Name + " runs"
		}
	}
	return ""
}

// set is the command that changes what the driver's pod is made from: an NVIDIADriver, where
// that makes its DaemonSet, else the ClusterPolicy.
func (l *driverLink) set(fields string) string {
	if d := l.s.kit.SetOf(l.pod); d != nil {
		if of := metav1.GetControllerOfNoCopy(d); of != nil && of.Kind == "NVIDIADriver" {
			return fmt.Sprintf(`kubectl patch nvidiadriver %s --type=merge -p '{"spec":{%s}}'`, of.Name, fields)
		}
	}
	return fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"driver":{%s}}}'`, l.s.policyName(), fields)
}

// waitFor leaves a link that is starting alone.
func waitFor(n *view.Node, what string, left time.Duration) Mend {
	minutes := max(1, int(left.Round(time.Minute).Minutes()))
	return Mend{Kind: diagnosis.Wait, Title: fmt.Sprintf("wait until the %s of %s is ready, normally within %d min", what, n.Name, minutes), Until: fmt.Sprintf("%s has announced its GPUs, normally within %d min", n.Name, minutes), Risk: diagnosis.NoRisk, Minutes: minutes,
		Commands: []string{"kubectl get pods -A -o wide -w --field-selector spec.nodeName=" + n.Name}}
}
