package parts

import "testing"

// GPUs are shared by MPS where the entry names resources for that.
func TestWhatSharesByMPS(t *testing.T) {
	for entry, want := range map[string]bool{
		"version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}": true,
		"version: v1\nsharing: {mps: {resources: []}}":                                     false,
		"version: v1\nsharing: {mps: null}":                                                false,
		"version: v1\nsharing: {timeSlicing: {resources: [{name: a}]}}":                    false,
		"version: v1":                       false,
		" \n":                               false,
		"sharing: {mps: {resources: none}}": false,
		"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: many}]}}": true,
	} {
		if got := ByMPS(entry); got != want {
			t.Errorf("%q: %v", entry, got)
		}
	}
}

// The plugin takes no fewer than two of a device, by whatever it is shared.
func TestWhatSharesFewerThanTwice(t *testing.T) {
	for entry, want := range map[string]string{
		"":  "",
		"[": "",
		"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}":                                        "nvidia.com/gpu",
		"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}":                                        "",
		"sharing: {timeSlicing: {resources: [{name: a, replicas: 2}, {name: nvidia.com/mig-1g.5gb, replicas: 0}]}}": "nvidia.com/mig-1g.5gb",
		"sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu}]}}":                                             "",
	} {
		if got := FewerThanTwo(entry); got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}
