package layouts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// What a manifest for another model or driver meant, in the names of the board's own.
func TestNearestProfile(t *testing.T) {
	for _, c := range []struct{ product, asked, want string }{
		{"NVIDIA-H200", "1g.10gb", "1g.18gb"},
		{"NVIDIA-H200", "1g.10gb.me", "1g.18gb+me"},
		{"NVIDIA-H200", "7g.80gb", "7g.141gb"},
		{"NVIDIA-H200", "7g.80gb.me", "7g.141gb"},       // no 7g has the attribute
		{"NVIDIA-H100-80GB-HBM3", "1g.12gb", "1g.10gb"}, // and not 1g.20gb
		{"NVIDIA-H100-80GB-HBM3", "1g.15gb", "1g.20gb"}, // of two as near the larger
		{"NVIDIA-H100-80GB-HBM3", "1g.12gb.shared", "1g.10gb"},
		{"NVIDIA-A30", "3g.24gb", ""}, // it has no three of compute
		{"NVIDIA-A30", "all", ""},
		{"NVIDIA-A30", "1g.gb", ""},
		{"NVIDIA-A30", "-1g.6gb", ""},
		{"NVIDIA-L4", "1g.6gb", ""},
	} {
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"nvidia.com/gpu.product": c.product}}}}
		if got := nearestProfile(n, c.asked); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.product, c.asked, got, c.want)
		}
	}
}
