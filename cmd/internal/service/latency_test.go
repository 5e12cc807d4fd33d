package service

import (
	"slices"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/rcatest"
)

// waitingPods is how many pods wait, each of an incident of its own.
const waitingPods = 5

// BenchmarkConditionToDiagnosis is the time from a changed PodScheduled condition
// to its diagnosis on the bus, at 1,000 nodes and 10,000 pods: watcher, embedded
// NATS on a disk and diagnosis as `unpend run` has them, its debounce included.
// Every change must bring a diagnosis.
func BenchmarkConditionToDiagnosis(b *testing.B) {
	s := &served{Fleet: rcatest.MakeFleet(1000, 2, 10, waitingPods, time.Now())}
	_, published := s.serve(b)
	for range waitingPods {
		<-published
	}
	var took []time.Duration
	i := 0
	for b.Loop() {
		for range 4 {
			i++
			began := time.Now()
			s.change(s.Pods[len(s.Pods)-1-i%waitingPods])
			select {
			case <-published:
				took = append(took, time.Since(began))
			case <-time.After(time.Minute):
				b.Fatal("a change brought no diagnosis")
			}
		}
	}
	slices.Sort(took)
	at := func(p int) float64 { return float64(took[(len(took)-1)*p/100].Milliseconds()) }
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
	b.ReportMetric(float64(len(took)), "samples")
}
