package kubelet

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// program: a container is not begun for a program of NVIDIA's that is not where it is looked for. The runtime's own is named by
// its configuration; the others by the description of the device (CDI), in which who writes that puts the path that it was told:
// NVIDIA's device plugin by NVIDIA_CDI_HOOK_PATH or NVIDIA_CTK_PATH (k8s-device-plugin, cmd/nvidia-device-plugin).
func (s stopped) program(name string) *Stop {
	node := s.pod.Spec.NodeName
	stop := s.stop(diagnosis.RuntimeNotConfigured, diagnosis.RepairDeviceStack, fmt.Sprintf("the container runtime of %s is to run %s, and finds none there", node, name))
	stop.Words = "a program of NVIDIA's is missing"
	stop.mended(s, func(n *view.Node) []string {
		if strings.HasSuffix(name, homes.Runtime) {
			return append(toolkitOf(s, n), homes.Configure(n)...)
		}
		return []string{fmt.Sprintf("kubectl debug node/%s -it --image=busybox -- chroot /host find / -xdev -name '%s'  # where is it? the toolkit of the GPU Operator is in /usr/local/nvidia/toolkit", n.Name, path.Base(name)),
			"kubectl get daemonsets -A -o yaml | grep -n -A1 -e NVIDIA_CDI_HOOK_PATH -e NVIDIA_CTK_PATH  # what who describes the GPUs was told"}
	}, "where that program is on the machine is in no object")
	if stop.Title = fmt.Sprintf("name the path of %s on %s to who describes its GPUs (NVIDIA_CDI_HOOK_PATH of the device plugin), or install NVIDIA's container toolkit there", path.Base(name), node); strings.HasSuffix(name, homes.Runtime) {
		stop.Title = "install NVIDIA's container toolkit on " + node + " again: its runtime is configured, and not there"
	}
	return stop
}

// toolkitOf shows what the GPU Operator's toolkit of a node has done, where it has one: what it writes nobody writes by hand.
func toolkitOf(s stopped, n *view.Node) []string {
	toolkit := parts.Of(s.w).Pod(n, parts.Toolkit)
	if toolkit == nil {
		return nil
	}
	_, commands := homes.TakeIn(n, toolkit)
	return commands
}

// configure has the machine's runtime know NVIDIA's: by the GPU Operator's toolkit where that is on the node.
func (s stopped) configure(n *view.Node) []string {
	if by := toolkitOf(s, n); by != nil {
		return by
	}
	return homes.Configure(n)
}

// killed are the words of runtimes for what starts a container and was killed as it did: its memory counts as the container's (runc,
// libcontainer/process_linux.go; Kubernetes events of exit status 137).
var killed = regexp.MustCompile(`OOM-killed|exit status 137|signal: killed`)

// limited is the failing container where it was killed at its start and has a limit of memory; nil otherwise.
func (s stopped) limited() *corev1.Container {
	failing := incident.FailingContainer(s.pod.Status)
	if failing == nil || !killed.MatchString(s.says) {
		return nil
	}
	all := slices.Concat(s.pod.Spec.InitContainers, s.pod.Spec.Containers)
	at := slices.IndexFunc(all, func(k corev1.Container) bool { return k.Name == failing.Name })
	if at < 0 || all[at].Resources.Limits.Memory().IsZero() {
		return nil
	}
	return &all[at]
}

// starved: what gives a container its GPUs runs within the container's own limit of memory, and was killed.
func (s stopped) starved() *Stop {
	k := s.limited()
	limit := k.Resources.Limits.Memory().String()
	stop := s.stop(diagnosis.Unknown, diagnosis.Manual, fmt.Sprintf("it has its node: on %s what begins container %s is killed, which has at most %s of memory", s.pod.Spec.NodeName, k.Name, limit))
	stop.Words, stop.Title = "killed at its start", fmt.Sprintf("give container %s a higher limit of memory than %s: what makes it begin is killed within that", k.Name, limit)
	stop.Evidence = []diagnosis.Evidence{diagnosis.Fact(view.PodRef(s.pod), fmt.Sprintf("container %s: limit of memory %s", k.Name, limit), diagnosis.That("spec", "", diagnosis.Contains, limit))}
	stop.Unproven = "how much it needs to begin is in no object"
	stop.Risk, stop.StopsUnknown = diagnosis.MediumRisk, true // what makes the pod may roll those of its pods that run
	stop.Commands = []string{s.describe(), "# then edit resources.limits.memory of container " + k.Name + " in what makes the pod"}
	return stop
}
