package parts

import (
	"regexp"
	"strings"
)

// published are the systems that NVIDIA publishes images of its driver for, as the GPU Operator names them at the end of
// the image's tag (its platform support; gpu-operator internal/state/driver.go, getDriverImagePath). Of Ubuntu those are the
// releases with long support, of even years in April.
var published = regexp.MustCompile(`^(ubuntu\d[02468]\.04|ubuntu\d+$|ubuntu-core|rhel|rhcos|centos|sles|sl-micro|rocky|photon)`)

// Unpublished is the system that an image of NVIDIA's driver is for, where NVIDIA publishes none for that; empty for
// any other.
func Unpublished(image string) string {
	tag, is := strings.CutPrefix(image, "nvcr.io/nvidia/driver:")
	i := strings.LastIndex(tag, "-")
	if !is || i < 0 || published.MatchString(tag[i+1:]) {
		return ""
	}
	return tag[i+1:]
}
