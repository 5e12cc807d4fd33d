package executor

import (
	"slices"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// later has the executor's clock go on by so much.
func (c *cell) later(by time.Duration) {
	now := c.deps.Now
	c.deps.Now = func() time.Time { return now().Add(by) }
}

// atLabel is a plan whose executor ended right before, or after, it set the label.
func (c *cell) atLabel(t *testing.T) (node string, rem *v1alpha1.Remediation, label string) {
	t.Helper()
	node, rem = c.approved(t)
	c.standAt(t, rem, "0/config")
	return node, rem, `"nvidia.com/mig.config":"` + rem.Spec.Actions[0].Relayout.Config + `"`
}

func stepOf(rem *v1alpha1.Remediation, id v1alpha1.StepID) v1alpha1.Entry {
	i := slices.IndexFunc(rem.Status.Journal, func(e v1alpha1.Entry) bool { return e.Step == id })
	if i < 0 {
		return v1alpha1.Entry{}
	}
	return rem.Status.Journal[i]
}

// A step at which every executor ends is not tried for ever: past its deadline for a grace,
// and then the plan turns back.
func TestCrashLoopTurnsBack(t *testing.T) {
	c := newCell(t)
	node, rem, label := c.atLabel(t)
	c.crash.at = label
	for tries, at := range []time.Duration{0, time.Minute + 10*time.Second, 10 * time.Second} {
		c.later(at)
		if _, err := c.look(t, c.executor(), rem.Name); err != nil {
			t.Fatal(err)
		}
		if e := stepOf(c.read(t, rem.Name), "0/config"); c.crash.tries != tries+1 || (e.Grace != nil) != (tries > 0) || e.Ended != nil {
			t.Fatalf("%d tries, %+v", c.crash.tries, e)
		}
	}
	c.later(time.Minute)
	rem = c.carriedOut(t, rem.Name, c.executor)
	ended(t, rem, v1alpha1.Failed, "not within 1m0s: the executor has ended at every try")
	if e := stepOf(rem, "0/config"); c.crash.tries != 3 || e.Error == "" {
		t.Errorf("%d tries, %+v", c.crash.tries, e)
	}
	c.asBefore(t, node)
	c.noLocks(t)
	c.running(t, "inference", 3)
}

// Who was only away for long, longer than the step may take, finds what came of it.
func TestAwayForLong(t *testing.T) {
	c := newCell(t)
	_, rem, label := c.atLabel(t)
	c.crash.after = label
	if _, err := c.look(t, c.executor(), rem.Name); err != nil {
		t.Fatal(err)
	}
	c.crash.after = ""
	c.later(time.Minute + 30*time.Second)
	rem = c.carriedOut(t, rem.Name, c.executor)
	ended(t, rem, v1alpha1.Succeeded)
	if e := stepOf(rem, "0/config"); e.Grace == nil || e.Error != "" {
		t.Errorf("%+v", e)
	}
	c.noLocks(t)
}

// A way back at whose step every executor ends leaves the node parked, with the reason.
func TestCrashLoopOnTheWayBackParks(t *testing.T) {
	c := newCell(t)
	node, rem, label := c.atLabel(t)
	c.crash.after = label
	if _, err := c.look(t, c.executor(), rem.Name); err != nil {
		t.Fatal(err)
	}
	c.crash.after = ""
	c.decide(t, rem, "bob", v1alpha1.Reject)
	c.crash.at = `"nvidia.com/mig.config":"all-1g.5gb"`
	for tries, at := range []time.Duration{0, time.Minute + 10*time.Second} {
		c.later(at)
		if _, err := c.look(t, c.executor(), rem.Name); err != nil || c.crash.tries != tries+1 {
			t.Fatalf("%d tries, %v", c.crash.tries, err)
		}
	}
	c.later(time.Minute)
	rem = c.carriedOut(t, rem.Name, c.executor)
	ended(t, rem, v1alpha1.Parked, "bob said no", "the executor has ended at every try", "parked, cordoned on purpose")
	if mark := c.mark(t, node); mark == nil || mark.Parked == "" || c.crash.tries != 2 {
		t.Errorf("mark %+v after %d tries", mark, c.crash.tries)
	}
	c.noLocks(t)
}
