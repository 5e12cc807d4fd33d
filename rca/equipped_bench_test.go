package rca

import (
	"fmt"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/rcatest"
)

// What one question costs in a cluster of 1,000 nodes with 8 GPUs each, 10,000 pods that hold
// some, and the GPU Operator's three pods on every node: by how many nodes' device plugins
// crash. The goal is 2 s for why as a whole.
func BenchmarkDiagnoseEquipped(b *testing.B) {
	for _, every := range []int{0, 10, 1} {
		b.Run(fmt.Sprintf("broken=1/%d", every), func(b *testing.B) {
			st := rcatest.Troubled(1000, "nvidia.com/gpu")
			rcatest.Equip(st, every)
			b.ReportMetric(float64(len(st.Pods)), "pods")
			var longest time.Duration
			for b.Loop() {
				began := time.Now()
				all, err := Diagnose(b.Context(), st, Options{})
				if err != nil || len(all) != 1 {
					b.Fatalf("%d diagnoses, %v", len(all), err)
				}
				longest = max(longest, time.Since(began))
			}
			b.ReportMetric(longest.Seconds(), "max-s")
		})
	}
}
