package scaling

import "testing"

// A type whose machines have several GPUs is known by its name, or by what its cloud says of it; of one that is not,
// nothing is said.
func TestHowManyGPUsATypeHas(t *testing.T) {
	for name, want := range map[string]int64{
		"p4d.24xlarge": 8, "p4de.24xlarge": 8, "p5.48xlarge": 8, "p5en.48xlarge": 8, "p5.4xlarge": 0, "p3.2xlarge": 0, "p3.8xlarge": 4, "g5.12xlarge": 4, "g5.16xlarge": 0, "g6e.48xlarge": 8, "g4dn.xlarge": 0, "g4ad.16xlarge": 0,
		"Standard_NC12": 2, "Standard_NC24r": 4, "Standard_NC24rs_v3": 4, "Standard_NC24ads_A100_v4": 0, "Standard_NC96ads_A100_v4": 4, "Standard_ND96asr_v4": 8, "Standard_ND96amsr_A100_v4": 8, "Standard_ND96isr_H100_v5": 8, "Standard_NC4as_T4_v3": 0, "Standard_D4s_v5": 0,
		"a2-highgpu-1g": 0, "a2-highgpu-4g": 4, "a2-ultragpu-8g": 8, "a2-megagpu-16g": 16, "a3-highgpu-8g": 8, "a4-highgpu-8g": 8, "g2-standard-48": 0, "n1-standard-8": 0,
		"BM.GPU.H100.8": 8, "VM.GPU.A10.2": 2, "VM.GPU.A10.1": 0, "": 0, "k3s": 0,
	} {
		if got := GPUsOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
