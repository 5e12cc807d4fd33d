package executor

import (
	"context"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// Of two executors one leads, hears of an approval, and carries the plan out; the
// stepsOf says who, and when it ends the other one takes over.
func TestServiceLeads(t *testing.T) {
	c := newCell(t)
	_, d, f, _ := repartition(t, c)
	serve := func(name string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.executor().Run(ctx, c.Config(), name) }()
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	stop := serve("first")
	rem := c.recorded(t, d, f)
	phase := func(want v1alpha1.Phase) *v1alpha1.Remediation {
		var now *v1alpha1.Remediation
		controlplane.Eventually(t, time.Minute, "the plan is "+string(want), func() (bool, string) {
			var err error
			now, err = plan.Store{Dynamic: c.Dynamic()}.Get(t.Context(), rem.Name)
			if err != nil {
				t.Fatal(err)
			}
			return now.Status.Phase == want, string(now.Status.Phase) + " " + now.Status.Message
		})
		return now
	}
	phase(v1alpha1.Pending)
	second := serve("second")
	stop()
	c.decide(t, rem, "alice", v1alpha1.Approve)
	done := phase(v1alpha1.Succeeded)
	for _, e := range done.Status.Journal {
		if e.Leader != "second" || e.Generation != 1 {
			t.Errorf("%s by %s of generation %d", e.Step, e.Leader, e.Generation)
		}
	}
	second()
	c.evictions(t, f, 3)
}
