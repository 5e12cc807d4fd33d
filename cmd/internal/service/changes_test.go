package service

import (
	"syscall"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/rcatest"
)

const (
	// toldWithin is promised of an incident at 1,000 nodes. What is waited for is half a second,
	// in which changes gather, and the incidents that come before it, one after the other
	// (rca/fairqueue, TestChangesAreLookedAtOneAfterTheOther); the rest is for a processor.
	toldWithin = 2 * time.Second
	gathers    = 500 * time.Millisecond
)

// A change of a node has what waits looked at again: each incident once, published once, and at
// 1,000 nodes for so little of a processor that it is in time. Twenty times as many nodes cost
// about twenty times as much, and never twice that.
func TestAChangeOfALargeClusterIsToldInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds of a processor")
	}
	few, many := changeCosts(t, 50), changeCosts(t, 1000)
	t.Logf("one of %d incidents looked at again for %s of a processor at 50 nodes, %s at 1,000", waitingPods, few, many)
	if many > toldWithin-gathers {
		t.Errorf("a change at 1,000 nodes takes %s of a processor", many)
	}
	if many > 40*few {
		t.Errorf("a change at 1,000 nodes takes %s of a processor, at 50 nodes %s", many, few)
	}
}

// changeCosts is the processor time that an incident takes, at least, from a change of a node
// until all of them are published.
func changeCosts(t *testing.T, nodes int) (each time.Duration) {
	t.Helper()
	t.Run("a cluster", func(t *testing.T) {
		s := &served{Fleet: rcatest.MakeFleet(nodes, 8, 10, waitingPods, time.Now())}
		service, published := s.serve(t)
		hears := func(what string) {
			told := map[string]bool{}
			for len(told) < waitingPods {
				select {
				case id := <-published:
					if told[id] {
						t.Errorf("%s: %s is published twice", what, id)
					}
					told[id] = true
				case <-time.After(time.Minute):
					t.Fatalf("%s: only %v are published", what, told)
				}
			}
		}
		hears("at the start")
		least := time.Hour
		for n := range 3 {
			before, began := diagnosesOf(t, service), processor(t)
			s.taint(s.Nodes[n])
			hears("a change")
			least = min(least, processor(t)-began)
			if made := diagnosesOf(t, service) - before; made != waitingPods {
				t.Errorf("%d diagnoses of %d incidents", made, waitingPods)
			}
		}
		each = least / waitingPods
	})
	return each
}

// diagnosesOf is how many a service has made.
func diagnosesOf(t *testing.T, s *Service) int {
	t.Helper()
	all, err := s.registry.Gather()
	must(t, err)
	for _, m := range all {
		if m.GetName() == "unpend_diagnosis_duration_seconds" {
			return int(m.GetMetric()[0].GetHistogram().GetSampleCount())
		}
	}
	return 0
}

// processor is the time that this process has had so far, of the user and the kernel.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
