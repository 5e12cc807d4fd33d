package parts

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ByMPS says whether an entry of the device plugin's configuration shares GPUs by MPS
// (k8s-device-plugin api/config/v1).
func ByMPS(entry string) bool {
	var c struct {
		Sharing struct {
			MPS *struct {
				Resources []any `json:"resources"`
			} `json:"mps"`
		} `json:"sharing"`
	}
	return strings.TrimSpace(entry) != "" && yaml.Unmarshal([]byte(entry), &c) == nil && c.Sharing.MPS != nil && len(c.Sharing.MPS.Resources) > 0
}

// FewerThanTwo is the resource that an entry of the plugin's configuration shares fewer than two times; empty for none.
func FewerThanTwo(entry string) string {
	type shares struct {
		Resources []struct {
			Name     string `json:"name"`
			Replicas *int   `json:"replicas"`
		} `json:"resources"`
	}
	var c struct {
		Sharing struct {
			MPS         shares `json:"mps"`
			TimeSlicing shares `json:"timeSlicing"`
		} `json:"sharing"`
	}
	if strings.TrimSpace(entry) == "" || yaml.Unmarshal([]byte(entry), &c) != nil {
		return ""
	}
	for _, r := range slices.Concat(c.Sharing.MPS.Resources, c.Sharing.TimeSlicing.Resources) {
		if r.Replicas != nil && *r.Replicas < 2 {
			return r.Name
		}
	}
	return ""
}
