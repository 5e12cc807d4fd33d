package executor

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// atTerminal has a terminal record a plan and begin it, as far as the step, and end there.
func (c *cell) atTerminal(t *testing.T, d diagnosis.Diagnosis, f diagnosis.Fix, until v1alpha1.StepID) *v1alpha1.Remediation {
	t.Helper()
	deps := c.deps.withDefaults()
	deps.Requester = "alice"
	st := c.state(t)
	deps, rem, err := deps.recorded(t.Context(), plan.Propose(plan.Found{State: st, Diagnosis: d, Fix: f}, "alice", time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if until == "" {
		return rem
	}
	act.Begin(rem, st, f, time.Now())
	m, err := journal.New(deps.journaling(), rem, act.New(deps.acting(), rem))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); !strings.Contains(stepsOf(rem), string(until)); {
		wait, err := m.Advance(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatal(stepsOf(rem), err)
		}
		<-time.After(wait)
	}
	return rem
}

// impatient is an executor that takes a terminal for gone soon.
func (c *cell) impatient() *Executor {
	x := c.executor()
	x.carrierGone = 300 * time.Millisecond
	return x
}

// A plan that a terminal carries out is never begun by the executor, whatever is approved;
// one that was begun and does not move any more is taken back, and one that moves is not.
func TestTerminalsPlan(t *testing.T) {
	for _, step := range []v1alpha1.StepID{"0/cordon", "0/empty", "0/manager"} {
		t.Run("left at "+string(step), func(t *testing.T) {
			c := newCell(t)
			node, d, f, _ := repartition(t, c)
			rem := c.atTerminal(t, d, f, step)
			x := c.impatient()
			for range 5 { // it moves
				if _, err := x.Look(t.Context(), rem.Name); err != nil {
					t.Fatal(err)
				}
				if rem = c.read(t, rem.Name); rem.Status.Phase != v1alpha1.Running || len(c.node(t, node).Annotations[diagnosis.OperationAnnotation]) == 0 {
					t.Fatalf("%s: %s", rem.Status.Phase, rem.Status.Message)
				}
				rem.Status.Renewed = new(metav1.NowMicro())
				c.save(t, rem)
				<-time.After(100 * time.Millisecond)
			}
			rem = c.carriedOut(t, rem.Name, func() *Executor { return x })
			ended(t, rem, v1alpha1.Stopped, "the terminal of alice that carried it out has ended")
			c.asBefore(t, node)
			c.noLocks(t)
		})
	}
	t.Run("not begun", func(t *testing.T) {
		c := newCell(t)
		node, d, f, holders := repartition(t, c)
		rem := c.atTerminal(t, d, f, "")
		c.decide(t, rem, "alice", v1alpha1.Approve)
		x := c.impatient()
		for range 5 {
			again, err := x.Look(t.Context(), rem.Name)
			if err != nil || again < plan.Lifetime-time.Minute {
				t.Fatal(again, err)
			}
		}
		c.wrote(t, []write{{"create", "approvals", "", 201}}) // the terminal's own
		c.untouched(t, holders...)
		c.asBefore(t, node)
		x.Now = func() time.Time { return time.Now().Add(plan.Lifetime) }
		if _, err := x.Look(t.Context(), rem.Name); err != nil {
			t.Fatal(err)
		}
		ended(t, c.read(t, rem.Name), v1alpha1.Expired)
		// Who approves it again, for the executor this time, records it again.
		if again := c.recorded(t, d, f); again.UID == rem.UID || again.Spec.Carrier != "" || again.Status.Phase != "" {
			t.Errorf("%s is given back as carried by %q, %s", again.Name, again.Spec.Carrier, again.Status.Phase)
		}
	})
}

// Whose journal was written by another writes nothing more.
func TestTakenOver(t *testing.T) {
	c := newCell(t)
	node, d, f, _ := repartition(t, c)
	var rem *v1alpha1.Remediation
	c.on["wait until nobody holds"] = func() {
		plans, err := (plan.Store{Dynamic: c.Dynamic()}).List(t.Context())
		if err != nil || len(plans) != 1 {
			t.Fatal(plans, err)
		}
		rem, err = TakeBack(t.Context(), c.deps, plans[0].Name, nil)
		if err != nil {
			t.Error(err)
		}
	}
	c.deps.Requester = "alice"
	if _, err := c.apply(t, d, f); !errors.Is(err, journal.ErrTakenOver) {
		t.Error(err)
	}
	ended(t, rem, v1alpha1.Stopped, "the terminal of alice that carried it out has ended")
	c.asBefore(t, node)
}
