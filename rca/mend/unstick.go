package mend

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// Unstick has those leave who keep MIG manager from the GPUs of a node, and it try again:
// the pods that hold some, else what runs on the host itself; at last the node is booted.
func Unstick(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) []edit.Change {
	holders := n.GPUHolders()
	if u := layouts.UnswitchedOn(c.Cluster, n); u != nil && len(holders) == 0 {
		return []edit.Change{switchByReboot(n, u.On)}
	}
	if len(holders) == 0 {
		return append(outOfTheWay(n, cause), endHostClients(n, cause), Reboot(n, cause))
	}
	ch := edit.Change{Kind: diagnosis.EvictPods, Cause: cause, Manual: true, Minutes: 5, Risk: diagnosis.MediumRisk, Drained: holders,
		Title:      fmt.Sprintf("have %s leave %s, then MIG manager try again", view.PodList(holders), n.Name),
		Untestable: "what MIG manager makes of it no copy can show"}
	ch.Detail = func(ch *edit.Change) {
		ch.Steps = []string{"cordon " + n.Name}
		ch.Commands = []string{managerLog(n), "kubectl cordon " + n.Name}
		for _, p := range holders {
			ch.Steps = append(ch.Steps, "evict "+p.Namespace+"/"+p.Name)
			ch.Commands = append(ch.Commands, edit.EvictCommand(p))
		}
		if len(c.Cluster.State.LostBy(holders).Pods) > 0 {
			ch.Risk = diagnosis.HighRisk
		}
		ch.Steps = append(ch.Steps, "have MIG manager try again", "uncordon "+n.Name)
		ch.Commands = append(append(append(ch.Commands, tryAgain(n)...), StartPaused(n)...), "kubectl uncordon "+n.Name)
	}
	return []edit.Change{ch, Reboot(n, cause)}
}

// outOfTheWay has those go that MIG manager waits for: it told them to leave, and they are there still. Who is
// deleted by force is gone from the API, which is all that MIG manager looks at; its process may run on.
func outOfTheWay(n *view.Node, cause diagnosis.CauseID) []edit.Change {
	stay := layouts.Lingering(n)
	if len(stay) == 0 {
		return nil
	}
	ch := edit.Change{Kind: diagnosis.EvictPods, Cause: cause, Manual: true, Minutes: 5, Risk: diagnosis.MediumRisk, Drained: stay,
		Title:      fmt.Sprintf("have %s be gone from %s: MIG manager waits for that", view.PodList(stay), n.Name),
		Untestable: "what MIG manager makes of it no copy can show"}
	ch.Detail = func(ch *edit.Change) {
		ch.Steps, ch.Commands = []string{"see in MIG manager's log that it waits for them"}, []string{managerLog(n)}
		for _, p := range stay {
			who := p.Namespace + "/" + p.Name
			ch.Steps = append(ch.Steps, "see why "+who+" stays, and delete it by force")
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s describe pod %s  # why it stays: a kubelet that cannot end it, or a finalizer", p.Namespace, p.Name))
			if len(p.Finalizers) > 0 {
				ch.Commands = append(ch.Commands, fmt.Sprintf(`kubectl -n %s patch pod %s --type merge -p '{"metadata":{"finalizers":null}}'  # %s: where who set it is gone`, p.Namespace, p.Name, strings.Join(p.Finalizers, ", ")))
			}
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s delete pod %s --grace-period=0 --force  # its process may run on: then boot the machine", p.Namespace, p.Name))
		}
		ch.Steps = append(ch.Steps, "have MIG manager try again, where it has given up")
		ch.Commands = append(append(ch.Commands, tryAgain(n)...), StartPaused(n)...)
	}
	return []edit.Change{ch}
}

// Respell is for a layout that MIG manager fails on without a pod in its way, and whose
// profiles drivers call by different names: an entry of one's own has the driver's.
func Respell(c *edit.Workload, n *view.Node) []edit.Change {
	names := layouts.OtherwiseSpelled(c.Cluster, n)
	if len(names) == 0 || len(n.GPUHolders()) > 0 {
		return nil
	}
	config := n.Labels[view.LabelMIGConfig]
	source := c.Cluster.ConfigOf(n).Source
	minutes := 5
	if n.Labels[stack.DeployDriver] == "pre-installed" { // of the machine's own, as are others that use its GPUs: they are looked for first
		minutes = 10
	}
	return []edit.Change{{Kind: diagnosis.FixMIGConfig, Cause: diagnosis.MIGConfigFailed, Manual: true, Minutes: minutes, Risk: diagnosis.LowRisk,
		Title:      fmt.Sprintf("see by which name the driver of %s knows %s, and have an entry of its own say that", n.Name, strings.Join(names, ", ")),
		Untestable: "no NodeGeometry of " + n.Name + " tells the names of its driver",
		Steps:      []string{"see which profiles the driver lists, and by which names", "see in MIG manager's log that it is the name it fails on", "where it is, put an entry with the driver's name into a ConfigMap of your own, which ClusterPolicy names in spec.migManager.config", "label the node with that entry"},
		Commands: []string{fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host nvidia-smi mig -lgip", n.Name),
			fmt.Sprintf("kubectl get pods -A -l app=nvidia-mig-manager --field-selector spec.nodeName=%s  # then its log", n.Name),
			fmt.Sprintf("kubectl -n %s get configmap %s -o yaml  # entry %s", source.Namespace, source.Name, config)}}}
}

// endHostClients is for a GPU that is "in use by another client" and that no pod holds: on
// the host that may be DCGM, nvidia-persistenced, or a display (nvidia_drm, nvidia_modeset).
func endHostClients(n *view.Node, cause diagnosis.CauseID) edit.Change {
	host := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host ", n.Name)
	minutes := 5
	if cause == diagnosis.MIGConfigStuck {
		minutes = 10 // what it has paused is started again first
	}
	return edit.Change{Kind: diagnosis.Manual, Cause: cause, Manual: true, Minutes: minutes, Risk: diagnosis.MediumRisk,
		Title:      "end what else uses the GPUs of " + n.Name + ", then have MIG manager try again",
		Untestable: "no pod holds its GPUs, and what runs on the host is in no object",
		Steps:      []string{"see in MIG manager's log what it fails at", "see on " + n.Name + " which process has a GPU open (DCGM and nvidia-persistenced are services, nvidia_drm and nvidia_modeset modules)", "stop it", "have MIG manager try again"},
		Commands: append(append([]string{managerLog(n), host + "sh -c 'lsof /dev/nvidia* || fuser -v /dev/nvidia*'", host + "sh -c 'lsmod | grep nvidia'",
			host + "systemctl stop nvidia-persistenced nvidia-dcgm dcgm-exporter  # those of them that run", host + "modprobe -r nvidia_drm nvidia_modeset  # where a display holds it"}, tryAgain(n)...), StartPaused(n)...)}
}

// switchByReboot is for GPUs that take a MIG mode at a reboot alone: MIG manager lays them out once it
// finds them in that mode.
func switchByReboot(n *view.Node, on bool) edit.Change {
	ch := Reboot(n, diagnosis.MIGConfigFailed)
	mode, value := "off", 0
	if on {
		mode, value = "on", 1
	}
	ch.Title = fmt.Sprintf("switch the MIG mode of %s %s by a reboot: in a virtual machine its GPUs may take it no other way", n.Name, mode)
	ch.Untestable = "nothing tells that it is the mode that MIG manager fails at but its log; and a reboot cannot be tried on a copy"
	ch.Steps = []string{"see in MIG manager's log that a mode change is pending", "drain " + n.Name + ", set the mode and reboot it: the mode stays, and MIG manager applies " + n.Labels[view.LabelMIGConfig] + " when it starts",
		"for the next time: env WITH_REBOOT=true of ClusterPolicy's spec.migManager has MIG manager reboot nodes for it, and drain none before"}
	set := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host nvidia-smi -mig %d  # where a container installs the driver: chroot /host/run/nvidia/driver", n.Name, value)
	after := append(ch.Commands[1:], StartPaused(n)...)
	ch.Commands = append([]string{managerLog(n), ch.Commands[0], set}, append(after, fmt.Sprintf("kubectl get node %s -L %s,%s -w", n.Name, view.LabelMIGConfig, view.LabelMIGState))...)
	return ch
}

// managerLog reads what MIG manager fails at: it writes no Events.
func managerLog(n *view.Node) string {
	if p := n.MIGManagerPod(); p != nil {
		return fmt.Sprintf("kubectl -n %s logs %s --tail=50  # MIG manager's: what it fails at", p.Namespace, p.Name)
	}
	return fmt.Sprintf("kubectl get pods -A -l app=nvidia-mig-manager --field-selector spec.nodeName=%s  # then its log: what it fails at", n.Name)
}

// tryAgain starts MIG manager's pod on the node again: it looks at the label when it starts,
// and else only when that changes.
func tryAgain(n *view.Node) []string {
	if p := n.MIGManagerPod(); p != nil {
		return []string{fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again, and it applies %s", p.Namespace, p.Name, n.Labels[view.LabelMIGConfig])}
	}
	return []string{fmt.Sprintf("kubectl delete pod -A -l app=nvidia-mig-manager --field-selector spec.nodeName=%s  # it is made again, and applies %s", n.Name, n.Labels[view.LabelMIGConfig])}
}

// StartPaused is for a MIG manager that does not come round by itself.
func StartPaused(n *view.Node) []string {
	paused := layouts.PausedComponents(n)
	if len(paused) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("kubectl label node %s %s=true --overwrite  # if still paused once %s is success", n.Name, strings.Join(paused, "=true "), view.LabelMIGState)}
}

// Reapply has MIG manager look at the label again, by hand, and says why.
func Reapply(_ *edit.Workload, n *view.Node, why string) edit.Change {
	config := n.Labels[view.LabelMIGConfig]
	ch := edit.Change{Kind: diagnosis.RevertMIGConfig, Cause: diagnosis.MIGLayoutDrift, Manual: true, Minutes: 6, Risk: diagnosis.MediumRisk, Drained: n.GPUHolders(),
		Title:      fmt.Sprintf("have MIG manager apply %q to %s again", config, n.Name),
		Untestable: "by hand: " + why}
	ch.Commands = []string{"kubectl cordon " + n.Name}
	for _, p := range n.GPUHolders() {
		ch.Commands = append(ch.Commands, edit.EvictCommand(p))
	}
	ch.Commands = append(append(ch.Commands, tryAgain(n)...),
		fmt.Sprintf("kubectl get node %s -L %s,%s -w", n.Name, view.LabelMIGConfig, view.LabelMIGState), "kubectl uncordon "+n.Name)
	return ch
}

// Unsettled says whether a cause is one of a node whose GPUs are not laid out as its label asks, or
// not for long: MIG manager is not done with it, cannot do it, or what it did is lost. To ask for
// something else there is no way out. What the node offers goes with the next look of MIG manager
// or of the device plugin, and a pod on it keeps the GPU from being laid out.
func Unsettled(id diagnosis.CauseID) bool {
	switch id {
	case diagnosis.MIGConfigFailed, diagnosis.MIGConfigStuck, diagnosis.MIGConfigInProgress, diagnosis.MIGModePending, diagnosis.MIGConfigUnknown, diagnosis.MIGConfigInvalidForGPU, diagnosis.MIGLayoutDrift:
		return true
	}
	return false
}

// Doubtful says why another layout is not proved on a node where MIG manager has failed: by
// what no object tells, it may fail again.
func Doubtful(n *view.Node, causes []diagnosis.CauseID, victims []*corev1.Pod) string {
	for _, id := range causes {
		if id == diagnosis.MIGConfigFailed && len(n.GPUHolders()) == 0 && len(victims) == 0 {
			return "MIG manager has failed on " + n.Name + ", where no pod holds a GPU: until what does is gone, it may fail on any layout"
		}
	}
	return ""
}
