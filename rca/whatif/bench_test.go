package whatif

import (
	"fmt"
	"testing"
	"time"
)

// fleet has n nodes of 2 MIG instances, both held.
func fleet(b *testing.B, n int) *Snapshot {
	b.Helper()
	var objs Objects
	for i := range n {
		name := fmt.Sprintf("gpu-%05d", i)
		objs.Nodes = append(objs.Nodes, node(name, 96, 2))
		for k := range 2 {
			objs.Pods = append(objs.Pods, on(pod(fmt.Sprintf("p-%d-%d", i, k), 4, 1), name))
		}
	}
	return snapshot(b, objs)
}

var sizes = []int{1000, 5000}

func BenchmarkExplain(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, p := fleet(b, n), pod("asked", 4, 1)
			for b.Loop() {
				if v, err := s.Explain(b.Context(), p); err != nil || len(v.Nodes) != n {
					b.Fatal(len(v.Nodes), err)
				}
			}
		})
	}
}

func BenchmarkFits(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, p := fleet(b, n), pod("asked", 4, 1)
			for b.Loop() {
				if _, err := s.Fits(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkProofVsBarePass reports how much longer a proof on a fork takes than
// the filters' bare pass over the same nodes, measured turn by turn.
func BenchmarkProofVsBarePass(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, p := fleet(b, n), pod("asked", 4, 1)
			bigger := node("gpu-00000", 96, 3)
			pass := func(s *Snapshot, want int) {
				if got, err := s.Fits(b.Context(), p); err != nil || len(got) != want {
					b.Fatal(got, err)
				}
			}
			var bare, proof time.Duration
			for b.Loop() {
				begin := time.Now()
				pass(s, 0)
				middle := time.Now()
				if err := Try(s, func(s *Snapshot) error { s.SetNode(bigger); pass(s, 1); return nil }); err != nil {
					b.Fatal(err)
				}
				bare, proof = bare+middle.Sub(begin), proof+time.Since(middle)
			}
			b.ReportMetric(float64(proof)/float64(bare), "ratio")
		})
	}
}
