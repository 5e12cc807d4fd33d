package parts

import (
	"strings"

	"github.com/unpend/unpend/rca/view"
)

// Mismatch is why a node is rebooted whose driver and libraries are not of one version.
const Mismatch = "its driver's libraries are not of the version of the module that is loaded, and the next boot loads theirs"

// Mismatched says whether NVIDIA's libraries say so (nvmlErrorString of NVML_ERROR_LIB_RM_VERSION_MISMATCH): packages
// were upgraded, and the module of before stays until nobody uses it.
func Mismatched(says string) bool {
	return strings.Contains(strings.ToLower(says), "driver/library version mismatch")
}

// Reboot empties a machine and starts it again.
func Reboot(n *view.Node) []string {
	return []string{"kubectl drain " + n.Name + " --ignore-daemonsets --delete-emptydir-data", "# reboot the machine, then:", "kubectl uncordon " + n.Name}
}
