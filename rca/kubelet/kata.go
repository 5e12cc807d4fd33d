package kubelet

import (
	"fmt"
	"regexp"

	"github.com/unpend/unpend/rca/diagnosis"
)

// portless is how Kata Containers refuses a device that it is to pass into its machine: the configuration that it reads names no
// port to plug that into (kata-containers src/runtime/pkg/device/drivers/vfio.go).
var portless = regexp.MustCompile(`cold_plug_vfio= or hot_plug_vfio= port is not set for device (\S+)`)

// kata: where somebody has set a port, it often stands in a file that this handler does not read: each hypervisor has its own.
func (s stopped) kata(device string) *Stop {
	node := s.pod.Spec.NodeName
	stop := s.stop(diagnosis.RuntimeNotConfigured, diagnosis.RepairDeviceStack, fmt.Sprintf("Kata Containers on %s has no port to plug %s into its machine: the configuration that it reads sets none", node, device))
	handler, of := "kata", "its handler"
	if class := s.runtimeClass(); class != nil {
		handler, of, stop.Evidence = class.Handler, "its handler "+class.Handler, s.handled(class)
	}
	stop.Title, stop.Words = fmt.Sprintf("set hot_plug_vfio or cold_plug_vfio of Kata Containers on %s, in the file that %s reads", node, of), "Kata has no port for the device"
	stop.Risk, stop.Minutes, stop.Unproven = diagnosis.LowRisk, 10, "what Kata is configured with on the machine is in no object"
	stop.Commands = []string{"# on the machine: which file it reads (ConfigPath of containerd's runtime, runtime_config_path of CRI-O; else the first that is there)",
		fmt.Sprintf("grep -rn -A8 'runtimes.%s' /etc/containerd /etc/crio; kata-runtime --show-default-config-paths", handler),
		`# in that very file, under its [hypervisor.…]: hot_plug_vfio = "root-port", pcie_root_port = 1 or more: machines that it begins from then on have it`,
		s.describe() + "  # the kubelet tries again by itself"}
	return stop
}
