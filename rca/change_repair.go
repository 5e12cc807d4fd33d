package rca

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// pluginName is in the names of NVIDIA's device plugin's DaemonSet and container
// (GPU Operator and the plugin's own chart).
const pluginName = "nvidia-device-plugin"

// restartPlugin evicts the device plugin's pod, which its DaemonSet makes anew: it
// looks at the GPUs afresh, and forgets what it had marked unhealthy.
func (c *Bench) restartPlugin(n *nodeView, cause CauseID) change {
	ch := change{kind: RestartDevicePlugin, cause: cause, minutes: 1, risk: LowRisk, title: "restart the device plugin on " + n.Name,
		until: "the device plugin of " + n.Name + " has registered its devices again",
		node: func(o *corev1.Node) {
			maps.Copy(o.Status.Allocatable, n.asReported())
			maps.Copy(o.Status.Capacity, n.asReported())
		}}
	if n.geometry == nil && cause == DevicePluginDown {
		ch.untestable = "what it offers then cannot be told: nothing reports the GPUs of " + n.Name
	}
	p := n.pluginPod()
	if p == nil {
		ch.manual = true
		ch.commands = []string{fmt.Sprintf("kubectl get pods -A --field-selector spec.nodeName=%s | grep device-plugin  # delete that pod; its DaemonSet makes it anew", n.Name)}
		return ch
	}
	by := metav1.GetControllerOfNoCopy(p)
	ch.detail = func(ch *change) {
		ch.steps = []string{fmt.Sprintf("evict %s/%s, which daemonset/%s makes anew", p.Namespace, p.Name, by.Name), "wait until " + n.Name + " offers its devices again"}
		ch.commands = []string{evictCommand(p)}
		ch.actions = []Action{{Verb: VerbEvict, Target: podTarget(p), Relies: map[string]string{"node": p.Spec.NodeName, RemadeBy: by.Name}}}
	}
	return ch
}

// mpsName is in the name of the plugin's daemon for sharing by MPS, whose pods have the
// plugin's name, too, and not its container (GPU Operator and the plugin's own chart).
const mpsName = "mps-control-daemon"

// pluginPod is the pod of the device plugin's DaemonSet on the node; nil where there is
// none. Anybody may name a pod so: one that no DaemonSet makes anew is not it.
func (n *nodeView) pluginPod() *corev1.Pod {
	of := func(is func(*corev1.Pod) bool) *corev1.Pod {
		for _, p := range n.pods {
			if by := metav1.GetControllerOf(p); by != nil && by.Kind == "DaemonSet" && is(p) {
				return p
			}
		}
		return nil
	}
	return cmp.Or(of(func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Spec.Containers, func(k corev1.Container) bool { return strings.Contains(k.Name, pluginName) })
	}), of(func(p *corev1.Pod) bool {
		return strings.Contains(p.Name, pluginName) && !strings.Contains(p.Name, mpsName)
	}))
}

// PluginOffers is what a node offers whose device plugin sees what the report shows;
// nothing without a report of positions (geo may be nil).
func PluginOffers(n *corev1.Node, geo *nodeprobe.NodeGeometry) corev1.ResourceList {
	return (&nodeView{Node: n, geometry: geo}).asReported()
}

// asReported is what the node would advertise if the device plugin saw what the
// report shows; nothing without a report of positions. A GPU that the driver calls
// unhealthy a plugin that starts anew calls so again.
func (n *nodeView) asReported() corev1.ResourceList {
	out := corev1.ResourceList{}
	if n.geometry == nil {
		return out
	}
	count := func(name corev1.ResourceName) {
		q := out[name]
		q.Add(resource.MustParse("1"))
		out[name] = q
	}
	for _, g := range n.geometry.Report.GPUs {
		if !g.Healthy {
			continue
		}
		if g.MIG == nil || !g.MIG.Current {
			count(wholeGPU)
			continue
		}
		for _, in := range g.Instances {
			name := corev1.ResourceName(migPrefix + spelled(in.Profile))
			if n.Labels[labelMIGStrategy] == strategySingle {
				name = wholeGPU
			}
			count(name)
		}
	}
	return out
}

// operation is the mark of unpend's own on the node; the zero value where there is none.
func (n *nodeView) operation() Operation {
	if mark, err := OperationOn(n.Node); err == nil && mark != nil {
		return *mark
	}
	return Operation{}
}

func reboot(n *nodeView) change {
	return change{kind: RebootNode, cause: MIGModePending, manual: true, minutes: 15, risk: HighRisk, title: "reboot " + n.Name + ", or reset its GPUs",
		untestable: "a reboot cannot be tried on a copy",
		commands:   []string{"kubectl drain " + n.Name + " --ignore-daemonsets --delete-emptydir-data", "# reboot the machine, then:", "kubectl uncordon " + n.Name}}
}

// waitForReady is all that can be done here about a node that is not ready.
func waitForReady(n *nodeView) change {
	return change{kind: Wait, cause: NodeNotReady, manual: true, risk: NoRisk, until: n.Name + " is Ready again",
		title: "wait until " + n.Name + " is Ready", node: func(o *corev1.Node) { o.Spec.Taints = slices.DeleteFunc(slices.Clone(o.Spec.Taints), passes) },
		commands: []string{"kubectl describe node " + n.Name}}
}
