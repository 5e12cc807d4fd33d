package parts

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// startupProbe is how a kubelet begins what a startup probe has said (pkg/kubelet/prober); the command's own words come behind.
const startupProbe = "Startup probe failed: "

// atStart is what the startup probe of a container that runs has said last, since it runs; empty for nothing. The container's
// status tells only that it is not ready.
func (k *Kit) atStart(p *corev1.Pod, c corev1.ContainerStatus) string {
	e := k.unhealthy[p.Namespace+"/"+p.Name]
	if e == nil || c.Started != nil && *c.Started || Said(e).Before(c.State.Running.StartedAt.Time) {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(e.Message, startupProbe))
}

// NotLoaded are the commands that show where NVIDIA's toolkit looks for a driver and finds none, by its own words, with the pod
// that is to load one; nil for other words.
func NotLoaded(words, node string, driver *corev1.Pod) []string {
	if !strings.Contains(words, "driver not loaded") {
		return nil
	}
	var out []string
	if driver != nil {
		out = append(out, fmt.Sprintf("kubectl -n %s exec %s -c %s -- nvidia-smi -L  # does the driver that it loads work there", driver.Namespace, driver.Name, driver.Spec.Containers[0].Name))
	}
	return append(out, fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host sh -c 'lsmod | grep nvidia; ls -l /dev/nvidia* /run/nvidia/driver'  # no module: the driver is not loaded; a module, and no devices or no driver there: the toolkit looks in another root", node))
}

// NoDevices are the commands that show why a driver that is loaded takes no card, where nvidia-smi says so in the driver's own
// startup probe; nil for other words. What the kernel's module says of each card stands in the machine's log alone.
func NoDevices(words, node string) []string {
	if !strings.Contains(words, "No devices were found") {
		return nil
	}
	return []string{fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host sh -c 'dmesg | grep NVRM'  # nvidia-smi finds no device where the driver is loaded and takes no card: why, as that it does not know it, or a VM leaves its memory no room (VMware: EFI, pciPassthru.use64bitMMIO)", node)}
}
