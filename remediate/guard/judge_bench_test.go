package guard

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// BenchmarkJudge is a plan that every rule looks at in vain. The time grows with the
// nodes and plans, not with their product.
func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{250, 1000, 4000} {
		b.Run(fmt.Sprintf("%d nodes, %d plans", n, n), func(b *testing.B) {
			s := quiet()
			s.view.Nodes = gpuNodes(n)
			s.limits.EvictionsPerHour = 2 * n
			evicting(s.plan, 5)
			s.wants("gpu-eeeeeeeeee", "gpu-ffffffffff")
			for i := range n - 1 {
				r := older(in(planFor(i+2, fmt.Sprintf("gpu-%d", i+2)), v1alpha1.Succeeded, noon.Add(-30*time.Minute)))
				r.Status.Evicted = 1
				s.add(r)
			}
			for i := range n / 50 { // others have closed some
				cordon(s.view.Nodes[n-1-i], noon.AddDate(0, 0, -1))
			}
			s.view.Wanted["gpu-cccccccccc"] = []corev1.ResourceName{"nvidia.com/gpu"}
			b.ReportAllocs()
			for b.Loop() {
				if got := s.judge(); got.Decision != Allow {
					b.Fatal(got)
				}
			}
		})
	}
}
