package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/edit/edittest"
)

const (
	mig1g = corev1.ResourceName("nvidia.com/mig-1g.5gb")
	mig2g = corev1.ResourceName("nvidia.com/mig-2g.10gb")
)

// world is a small cluster that a test fills, in which pod a/w of deployment a/w waits.
type world struct{ *edittest.World }

func newWorld() *world { return &world{edittest.New()} }

// bench is that of the pod that waits, not judged, of a workload of that kind named w.
func (w *world) bench(t *testing.T, kind string) *Bench {
	t.Helper()
	return New(w.Case(t, kind), nil)
}
