package whatif

import (
	"fmt"
	"testing"
)

// BenchmarkEvent is what one event costs a snapshot that is kept: it must not
// grow with the cluster.
func BenchmarkEvent(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, i := fleet(b, n), 0
			for b.Loop() {
				name := fmt.Sprintf("gpu-%05d", i%n)
				gone, back := on(pod(fmt.Sprintf("p-%d-0", i%n), 4, 1), name), node(name, 96, 2+int64(i%2))
				s.DeletePod(gone.Namespace, gone.Name)
				s.SetNode(back)
				s.SetPod(gone)
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(3*i), "ns/event")
		})
	}
}
