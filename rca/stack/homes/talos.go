package homes

import (
	"strings"

	"github.com/unpend/unpend/rca/view"
)

// Talos says whether it is the system of such a machine. It is read-only, and has no packages to build a
// module with: NVIDIA's driver is an extension of the machine's image, and the GPU Operator's driver
// container has nothing to work with (Talos' guide to NVIDIA GPUs).
func Talos(osImage string) bool { return strings.HasPrefix(osImage, "Talos") }

// Extensions are the commands that show what is built into such a machine's image.
func Extensions(n *view.Node) []string {
	return []string{"talosctl -n " + n.Name + " get extensions", "talosctl -n " + n.Name + " read /proc/driver/nvidia/version"}
}

// Driver are the commands that show what the driver on a node's machine says, and the kernel of it.
func Driver(n *view.Node) []string {
	if Talos(n.Status.NodeInfo.OSImage) {
		return append(Extensions(n), "talosctl -n "+n.Name+" dmesg | grep -i -e nvrm -e nvidia")
	}
	return []string{"kubectl debug node/" + n.Name + " -it --image=busybox --profile=sysadmin -- chroot /host sh -c 'nvidia-smi -L; cat /proc/driver/nvidia/version; dmesg | grep -i nvrm | tail'"}
}
