package stack

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Who stops when a DaemonSet is let onto a node: of a label nobody, of a toleration its pods elsewhere; what the GPU
// Operator writes for all that it makes may upgrade drivers, and nobody can say for whom.
func TestWhoStopsForADaemonSet(t *testing.T) {
	taint := []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		role    parts.Role
		misses  parts.Misses
		stops   int
		unknown bool
	}{
		"a label":                        {parts.Plugin, parts.Misses{Labels: []string{"a=b"}}, 0, false},
		"a toleration":                   {parts.Plugin, parts.Misses{Taints: taint}, 1, false},
		"a toleration of the driver":     {parts.Driver, parts.Misses{Taints: taint}, 0, true},
		"an affinity that a label meets": {parts.Plugin, parts.Misses{Affinity: true}, 0, false},
	} {
		l := newLab()
		n := l.gpuNode("n")
		l.gpuNode("other")
		l.pod(c.role, "other", nil)
		l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = nil // by NVIDIA's own chart
		w := view.New(l.State)
		s := Of(w)
		m := s.letOn(w.Nodes[n.Name], s.kit.Sets(c.role)[0], c.misses, "")
		if len(m.Stops) != c.stops || m.StopsUnknown != c.unknown {
			t.Errorf("%s: %d stop, unknown %v: %q", name, len(m.Stops), m.StopsUnknown, m.Commands)
		}
	}
}
