package refused

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// A node has had MIG where it names profiles and has instances of none: where it has one it is switched on, and where it
// names none nobody takes it for such a node.
func TestWhereALayoutIsNoMore(t *testing.T) {
	for _, k := range []struct {
		has  corev1.ResourceList
		want bool
	}{
		{rcatest.List("nvidia.com/gpu", "8", "nvidia.com/mig-1g.24gb", "0", "nvidia.com/mig-2g.48gb", "0"), true},
		{rcatest.List("nvidia.com/gpu", "6", "nvidia.com/mig-1g.24gb", "0", "nvidia.com/mig-2g.48gb", "2"), false},
		{rcatest.List("nvidia.com/gpu", "8"), false},
	} {
		n := &view.Node{Node: &corev1.Node{Status: corev1.NodeStatus{Capacity: k.has}}}
		if got := formerLayout(n); got != k.want {
			t.Errorf("%v: %t", k.has, got)
		}
	}
}
