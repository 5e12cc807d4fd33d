package parts

import "testing"

// NVIDIA publishes its driver for some systems: what an image is for stands behind the last hyphen of its tag.
func TestUnpublished(t *testing.T) {
	for image, want := range map[string]string{
		"nvcr.io/nvidia/driver:580.95.05-ubuntu22.04":                     "",
		"nvcr.io/nvidia/driver:580-6.8.0-60-generic-ubuntu24.04":          "",
		"nvcr.io/nvidia/driver:460.73.01-ubuntu21.04":                     "ubuntu21.04",
		"nvcr.io/nvidia/driver:460.73.01-ubuntu22.10":                     "ubuntu22.10",
		"nvcr.io/nvidia/driver:580.95.05-rhel9.4":                         "",
		"nvcr.io/nvidia/driver:580.95.05-rhcos4.16":                       "",
		"nvcr.io/nvidia/driver:470.57.02-sles15.3":                        "",
		"nvcr.io/nvidia/driver:580.95.05-debian13":                        "debian13",
		"nvcr.io/nvidia/driver:580.95.05-amzn2023":                        "amzn2023",
		"nvcr.io/nvidia/driver:580.95.05":                                 "",
		"registry.example/nvidia/driver:580.95.05-debian13":               "",
		"nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.8.0-debian13x": "",
	} {
		if got := Unpublished(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
