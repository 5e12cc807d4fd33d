package growth

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// Limits are told with what is used of them, all or those that are named.
func TestLimitsAreToldWithTheirUse(t *testing.T) {
	p := &scaling.Pool{Limits: rcatest.List("cpu", "8", view.WholeGPU, "4"), Used: rcatest.List(view.WholeGPU, "3")}
	for want, only := range map[string][]corev1.ResourceName{
		"cpu 0 of 8 used, nvidia.com/gpu 3 of 4 used": nil,
		"nvidia.com/gpu 3 of 4 used":                  {view.WholeGPU},
		"":                                            {"memory"},
	} {
		if got := limitsText(p, only); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A machine is meant for a pod that asks no more of any resource than it was asked for with, or
// has.
func TestWhichMachineIsMeantForAPod(t *testing.T) {
	w := rcatest.NewWorld()
	c := &Case{Pod: w.Wait, Asks: []view.Ask{{Resource: view.WholeGPU, Count: 2}}}
	for name, tc := range map[string]struct {
		requests, capacity string
		want               bool
	}{
		"asked for as many":   {"2", "0", true},
		"has as many":         {"1", "2", true},
		"neither":             {"1", "1", false},
		"asked for with more": {"4", "0", true},
	} {
		k := &scaling.Claim{Requests: rcatest.List(view.WholeGPU, tc.requests), Capacity: rcatest.List(view.WholeGPU, tc.capacity)}
		if c.meantFor(k) != tc.want {
			t.Errorf("%s: %v", name, !tc.want)
		}
	}
	if (&Case{Pod: w.Wait}).meantFor(&scaling.Claim{}) {
		t.Error("for a pod that asks no GPU")
	}
}
