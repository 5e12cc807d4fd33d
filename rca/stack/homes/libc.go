package homes

import (
	"fmt"
	"regexp"
)

// newerLibc are the words of a loader: what the GPU Operator's toolkit brings asks for a newer C library than the machine has.
var newerLibc = regexp.MustCompile("libc\\.so\\.6: version `(GLIBC_[0-9.]+)' not found \\(required by /usr/local/nvidia/toolkit/")

// NewerLibc is the C library that the GPU Operator's toolkit asks for and the machine does not have, by the words of what was to run;
// empty for none.
func NewerLibc(words string) string {
	if m := newerLibc.FindStringSubmatch(words); m != nil {
		return m[1]
	}
	return ""
}

// WithoutToolkit has the GPU Operator leave the runtime to the toolkit that the machines' image has: EKS's for GPUs have one, with
// the driver (awslabs/amazon-eks-ami#1892).
func WithoutToolkit(policy string) (steps, commands []string) {
	return []string{"see that the machine has NVIDIA's toolkit of its own, as images with a driver have: else take one with a newer system, or an older release of the operator's toolkit",
			"switch the operator's off: as it ends it takes back what it wrote into the container runtime's configuration; where it does not, have the machine made again"},
		[]string{"# on the machine: nvidia-ctk --version; ldd --version | head -1", fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"toolkit":{"enabled":false}}}'  # of every node; installed by helm: --set toolkit.enabled=false`, policy)}
}
