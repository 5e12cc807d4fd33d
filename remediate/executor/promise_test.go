package executor

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// TestPromise holds the executor, on the real control plane, to what it promises when
// something breaks or somebody is in its way. Each says in one line what it came to.
func TestPromise(t *testing.T) {
	l := make(lanes, 2)
	l <- shared.Get(t)
	l <- controlplane.Start(t)
	for _, p := range []struct {
		id  string
		run func(*testing.T, lanes)
	}{{"R10", promiseR10}, {"R11", promiseR11}, {"R14", promiseR14}, {"R15", promiseR15}, {"R19", promiseR19}, {"R27", promiseR27}, {"R28", promiseR28}, {"R29", promiseR29}} {
		t.Run(p.id, func(t *testing.T) { p.run(t, l) })
	}
}

// lanes are control planes: guard-rails count over all of a cluster, so there is one
// case at a time in each.
type lanes chan *controlplane.ControlPlane

// scene is one case of a promise.
type scene struct {
	name string
	play func(*testing.T, *cell)
}

// play plays the scenes, each in a cell of its own, and reports how many held.
func (l lanes) play(t *testing.T, scenes []scene, figures func() string) {
	t.Helper()
	var held atomic.Int32
	t.Run("of", func(t *testing.T) {
		for _, s := range scenes {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				cp := <-l
				t.Cleanup(func() { l <- cp })
				c := newCellOn(t, cp)
				c.deps.Deadlines.Settle = 100 * time.Millisecond
				s.play(t, c)
				if !t.Failed() {
					held.Add(1)
				}
			})
		}
	})
	report(t, int(held.Load()), len(scenes), figures())
}

// report is the one line of a promise that `make promises` shows: how many of how many
// cases it held in, and the figures behind it. Fewer than all, or none, fail the test.
func report(t *testing.T, held, of int, figures string) {
	t.Helper()
	_, id, _ := strings.Cut(t.Name(), "/")
	line := fmt.Sprintf("%s %d/%d, %s", id, held, of, figures)
	t.Log(line)
	fmt.Println(line)
	if held != of || of == 0 {
		t.Errorf("%s does not hold", id)
	}
}

// approved is the plan of the main case, recorded and approved, and the node and the
// pods that it is about.
func (c *cell) approved(t *testing.T) (node string, rem *v1alpha1.Remediation) {
	t.Helper()
	node, d, f, _ := repartition(t, c)
	rem = c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	return node, rem
}

// one is the executor of every look; without memory it is a new one at each.
func (c *cell) one() func() *Executor {
	x := c.executor()
	return func() *Executor { return x }
}

// noLocks wants the locks of nodes to have been given back.
func (c *cell) noLocks(t *testing.T) {
	t.Helper()
	leases, err := c.Client().CoordinationV1().Leases(c.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(leases.Items) != 0 {
		t.Errorf("%d locks are left, %v", len(leases.Items), err)
	}
}

// ended wants a plan's phase, and a message that says all of these.
func ended(t *testing.T, rem *v1alpha1.Remediation, phase v1alpha1.Phase, says ...string) {
	t.Helper()
	if rem.Status.Phase != phase {
		t.Errorf("the plan is %s, want %s: %s", rem.Status.Phase, phase, rem.Status.Message)
	}
	for _, s := range says {
		if !strings.Contains(rem.Status.Message, s) {
			t.Errorf("the message does not say %q: %s", s, rem.Status.Message)
		}
	}
}
