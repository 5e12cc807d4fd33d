package diagnosis

import "testing"

// A slip of the pen is no other word, and another letter or digit is.
func TestSlipsOfThePen(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"system-cluster-critical", "system-cluster-criticalx", true},
		{"system-cluster-critical", "system-cluster-crtical", true},
		{"system-node-critical", "system-ndoe-critical", true},
		{"nvidia-gpu", "nvidia_GPU", true},
		{"pool-a", "pool-b", false},
		{"pool", "pool2", false},
		{"low", "slow", false},
		{"high-priority", "low-priority", false},
		{"", "", false},
		{"", "a", false},
	} {
		if got := Misspelled(tc.a, tc.b); got != tc.want {
			t.Errorf("%q and %q: %v", tc.a, tc.b, got)
		}
	}
}
