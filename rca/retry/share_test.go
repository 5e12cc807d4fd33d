package retry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
)

// world is a small cluster that a test fills, in which pod a/w of deployment a/w waits.
type world struct{ *edittest.World }

func newWorld() *world { return &world{edittest.New()} }

// bench is what the pod that waits is made from, of a workload of that kind named w.
func (w *world) bench(t *testing.T, kind string) *edit.Workload {
	t.Helper()
	return edit.New(w.Case(t, kind))
}

func list(pairs ...string) corev1.ResourceList { return rcatest.List(pairs...) }

// Of several resources of which more than a share is asked, the one that was refused is asked
// once; where that cannot be told a person has to see.
func TestOneShare(t *testing.T) {
	const shared, other = "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb.shared"
	for name, tc := range map[string]struct {
		asks    corev1.ResourceList
		refused string
		want    string
	}{
		"one asks several":      {list(shared, "2", other, "1"), "", "ask 1 instead of 2 nvidia.com/gpu.shared in deployment/w"},
		"two do":                {list(shared, "2", other, "3"), "", ""},
		"one of two is named":   {list(shared, "2", other, "3"), `invalid request for "nvidia.com/mig-1g.5gb.shared"`, "ask 1 instead of 3 nvidia.com/mig-1g.5gb.shared in deployment/w"},
		"named as it once was":  {list(shared, "2", other, "3"), `request for 'nvidia.com/gpu.shared: 2' too large`, "ask 1 instead of 2 nvidia.com/gpu.shared in deployment/w"},
		"both are named":        {list(shared, "2", other, "3"), `"nvidia.com/gpu.shared" and "nvidia.com/mig-1g.5gb.shared"`, ""},
		"none asks several":     {list(shared, "1"), `"nvidia.com/gpu.shared"`, ""},
		"one is named, not two": {list(shared, "2"), "", "ask 1 instead of 2 nvidia.com/gpu.shared in deployment/w"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Asking(tc.asks)
			c := w.bench(t, "Deployment")
			c.Refusal.Message = tc.refused
			got := ""
			for _, ch := range OneShare(c) {
				got = ch.Title
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
