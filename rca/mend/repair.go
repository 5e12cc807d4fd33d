package mend

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// RestartPlugin evicts the device plugin's pod, which its DaemonSet recreates: it
// looks at the GPUs afresh, and forgets what it had marked unhealthy.
func RestartPlugin(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) edit.Change {
	ch := edit.Change{Kind: diagnosis.RestartDevicePlugin, Cause: cause, Minutes: 1, Risk: diagnosis.LowRisk, Title: "restart the device plugin on " + n.Name,
		Until: "the device plugin of " + n.Name + " has registered its devices again",
		Node:  offering(n.Offers())}
	switch {
	case cause == diagnosis.GPUUnhealthy && n.Geometry == nil && n.StockOf(view.WholeGPU).Allocatable >= n.StockOf(view.WholeGPU).Capacity:
		ch.Untestable = "nothing reports whether the driver of " + n.Name + " finds the missing GPU by now: if it does, the device plugin offers it once it starts again"
	case cause == diagnosis.GPUUnhealthy && sickStill(c, n):
		ch.Manual = true // it comes after the quarantine of what is sick
		ch.Untestable = "the driver shows " + n.SickText() + " of " + n.Name + " sick still: only once that has passed does a restart give it back, for health is one-way until then"
	case cause == diagnosis.GPUUnhealthy && !freshlyReported(c, n):
		ch.Untestable = "nothing reports whether the unhealthy devices of " + n.Name + " are sound again: if they are, it offers them again, for health is one-way until it restarts"
	case n.Geometry == nil:
		ch.Untestable = "nobody knows what it will offer: nothing reports the GPUs of " + n.Name
	}
	p := n.PluginPod()
	if other := stack.Of(c.Cluster).PluginOf(n, c.Wants); other != nil {
		p = other
	}
	if p == nil {
		ch.Manual = true
		ch.Commands = []string{fmt.Sprintf("kubectl get pods -A --field-selector spec.nodeName=%s | grep device-plugin  # delete that pod; its DaemonSet recreates it", n.Name)}
		return ch
	}
	by := metav1.GetControllerOfNoCopy(p)
	ch.Detail = func(ch *edit.Change) {
		ch.Steps = []string{fmt.Sprintf("evict %s/%s, which daemonset/%s recreates", p.Namespace, p.Name, by.Name), "wait until " + n.Name + " offers its devices again"}
		ch.Commands = []string{edit.EvictCommand(p)}
		if !ch.Manual {
			ch.Actions = []diagnosis.Action{{Verb: diagnosis.VerbEvict, Target: view.PodTarget(p), Relies: map[string]string{"node": p.Spec.NodeName, diagnosis.RemadeBy: by.Name}}}
		}
	}
	return ch
}

// sickStill says that the driver has just shown GPUs sick that the device plugin has marked, and that the others would not do for what
// is asked: a restart brings nothing as long as that is so. Else a copy shows what it brings.
func sickStill(c *edit.Workload, n *view.Node) bool {
	if n.SickText() == "" || !freshlyReported(c, n) {
		return false
	}
	offers := n.Offers()
	return slices.ContainsFunc(c.Asks, func(a view.Ask) bool {
		free, then, now := n.Free(a.Resource), offers[a.Resource], n.Allocatable(a.Resource)
		return n.Capacity(a.Resource) > now && a.Count > free.Value()+then.Value()-now && a.Count > free.Value()
	})
}

// freshFor is how old a report may be that shows what GPUs are like now.
const freshFor = 5 * time.Minute

// freshlyReported says whether the driver itself has told a short while ago what the node's
// GPUs are like.
func freshlyReported(c *edit.Workload, n *view.Node) bool {
	return n.Geometry != nil && n.Geometry.Report.Source == nodeprobe.SourceNVML && c.Cluster.State.Now.Sub(n.Geometry.Report.ObservedAt.Time) <= freshFor
}

// Reboot empties a node by hand and boots it: devices, plugin and kubelet begin afresh.
func Reboot(n *view.Node, cause diagnosis.CauseID) edit.Change {
	return edit.Change{Kind: diagnosis.RebootNode, Cause: cause, Manual: true, Minutes: 15, Risk: diagnosis.HighRisk, Title: "reboot " + n.Name + ", or reset its GPUs",
		Untestable: "a reboot cannot be tried on a copy", Drained: view.Drained(n),
		Commands: []string{"kubectl drain " + n.Name + " --ignore-daemonsets --delete-emptydir-data", "# reboot the machine, then:", "kubectl uncordon " + n.Name}}
}

// readyAgain is how long a machine takes to start, at most, and to be Ready.
const readyAgain = 15 * time.Minute

// openedBy are the commands for a node that should have lost its startup taint long ago.
func openedBy(s *terms.Shut, n *view.Node) []string {
	look := "kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + "  # whether what takes it off runs there"
	if s.Opener() == "Karpenter" {
		look = "kubectl get nodeclaims -o wide  # that of " + n.Name + " says what it waits for; without one Karpenter does not know the machine"
	}
	return []string{look, "kubectl taint nodes " + n.Name + " " + s.TaintText() + "-  # only where nothing is to take it off any more"}
}

// WaitForReady is all that can be done here about a node that takes no pods for now; what
// would open it may have to be let on it first.
func WaitForReady(c *edit.Workload, n *view.Node) edit.Change {
	until, commands := "is Ready again", []string{"kubectl describe node " + n.Name}
	if terms.UnderDiskPressure(n) { // its kubelet has freed what it may
		commands = append(commands, "kubectl debug node/"+n.Name+" -it --image=busybox -- chroot /host df -h /var/lib/kubelet /var/lib/containerd /var/log  # which disk is full; then free some there, or give the machine a larger one", "kubectl get pods -A -o wide --field-selector spec.nodeName="+n.Name+"  # who starts again and again fills it with what each start leaves")
	}
	title, risk := "wait until "+n.Name+" is Ready", diagnosis.NoRisk
	var drained []*corev1.Pod // who stops where the machine is given up
	if s := terms.ShutFor(c.Subject(), n); s != nil {
		if !s.Unready.IsZero() && c.Cluster.State.Now.Sub(s.Unready) > readyAgain {
			title = "see why " + n.Name + " is not Ready, for " + view.Age(c.Cluster.State.Now.Sub(s.Unready))
			if claim := c.Cluster.Outlook().ClaimOf(n.Name); claim != nil {
				commands = append(commands, "kubectl delete nodeclaim "+claim.Name+"  # where it does not come back: Karpenter makes another while the pod waits; who runs on it stops")
				risk, drained = diagnosis.MediumRisk, view.Drained(n)
			}
		}
		if s.Networkless {
			commands = append(commands, "kubectl get pods -A -o wide --field-selector spec.nodeName="+n.Name+"  # its network's (cilium, canal, calico): whether it runs, and what it says",
				"# on the machine: /etc/cni/net.d, and whether its container runtime looks there; where NVIDIA's toolkit has written the runtime's configuration over (RKE2, k3s: config.toml.tmpl), take that away and start the runtime again")
		}
		if s.Until != until {
			until, title = s.Until, "wait until "+n.Name+" "+s.Until
		}
		if s.Down {
			title = "see on the machine of " + n.Name + " why its container runtime is down"
			commands = append(commands, "# on the machine: systemctl status and journalctl of its container runtime, or of what starts it (k3s, rke2-agent, k0sworker)", "# where NVIDIA's toolkit has just written its configuration: take that file away, start the runtime again, and have the toolkit write what this release of it reads")
		}
		if p, _, _, are := stack.Of(c.Cluster).AllInTrouble(s.Openers(c.Subject(), n)); are {
			title = fmt.Sprintf("see why %s/%s does not work: it %s", p.Namespace, p.Name, strings.Replace(s.Opening(), "gives it its", "gives "+n.Name+" its", 1))
			commands = append(commands, fmt.Sprintf("kubectl -n %s describe pod %s", p.Namespace, p.Name), fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50  # and --previous, where it starts again and again", p.Namespace, p.Name))
		} else if !s.Overdue.IsZero() {
			title = fmt.Sprintf("see why %s has not taken taint %s off %s, which has been Ready for %s", s.Opener(), s.Taint(), n.Name, view.Age(c.Cluster.State.Now.Sub(s.Overdue)))
			commands, risk = append(commands, openedBy(s, n)...), diagnosis.LowRisk
		}
		if s.By != nil {
			title = "have " + s.Ref() + " tolerate " + s.Misses() + ": its pod opens " + n.Name
			commands = append(commands, fmt.Sprintf("kubectl -n %s edit daemonset %s  # tolerate %s", s.By.Namespace, s.By.Name, s.Misses()))
		}
	}
	open := func(o *corev1.Node) { o.Spec.Taints = slices.DeleteFunc(slices.Clone(o.Spec.Taints), terms.Passing) }
	ch := edit.Change{Kind: diagnosis.Wait, Cause: diagnosis.NodeNotReady, Manual: true, Risk: risk, Drained: drained, Until: n.Name + " " + until, Title: title, Node: open, Commands: commands}
	if o := terms.OverfullOn(c.Subject(), n); o != nil {
		ch = writeElsewhere(c, n, ch, o)
	}
	if layouts.Left(c.Cluster, n) {
		ch.Node, ch.Until, ch.Untestable = nil, "", "what MIG manager makes of "+n.Name+" once it is Ready shows then"
		return ch
	}
	if f := c.Broken(n); f == nil || !f.Unready {
		return ch
	}
	offers, unknown := announced(c, n, false) // it offers no GPU while its kubelet is not there for it
	if unknown != "" {
		ch.Node, ch.Until, ch.Untestable = nil, "", unknown
		return ch
	}
	ch.Until += " and its device plugin has announced its GPUs"
	ch.Node = func(o *corev1.Node) { open(o); offers(o) }
	return ch
}
