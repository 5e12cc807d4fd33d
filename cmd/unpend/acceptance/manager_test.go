package acceptance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// The deadlines that MIG manager is given in R12.
const (
	managerDeadline = 12 * time.Second
	wedgeDeadline   = 6 * time.Second
	// grace is what there is beyond the deadline until a plan has ended.
	grace = time.Minute
)

// managed is what becomes of a plan with a MIG manager that has a fault.
type managed struct {
	name   string
	faults sim.Faults
	phase  v1alpha1.Phase
	says   string
}

// promiseR12: a MIG manager that fails, dies, wedges or is slow. The node is back on
// its old layout, or parked, and is never pending without an owner.
func promiseR12(t *testing.T) {
	needsControlPlane(t)
	var s tally
	cases := controlplane.Some([]managed{
		{"3x slower", sim.Faults{Slow: 600 * time.Millisecond}, v1alpha1.Succeeded, "runs"},
		{"fails", sim.Faults{Fail: true}, v1alpha1.Failed, "says failed"},
		{"dies", sim.Faults{Die: true}, v1alpha1.Failed, "not within 12s"},
		{"wedges", sim.Faults{Wedge: true}, v1alpha1.Parked, "stuck: pending and paused"},
		{"too slow", sim.Faults{Slow: 5 * time.Minute}, v1alpha1.Parked, "stuck: pending and paused"},
	}, 2)
	onLanes(t, 3, cases, func(t *testing.T, l *lane, m managed) {
		s.add(t.Run(m.name, func(t *testing.T) { s.took("end", m.play(t, l)) }))
	})
	report(t, s.passed, len(cases), fmt.Sprintf("ended at the latest %.1f s after the config was set, with a deadline of %.0f s", s.worst["end"].Seconds(), managerDeadline.Seconds()))
}

func (m managed) play(t *testing.T, l *lane) time.Duration {
	c := l.newCell(t)
	l.stack.SetFaults(c.node, m.faults)
	config := executorConfig(t, c.ns, fmt.Sprintf("evict: 60s, leave: 60s, manager: %s, wedge: %s, run: 60s", managerDeadline, wedgeDeadline))
	unwatch := c.neverAlone(t)
	c.approve(t)
	startExecutor(t, "executor-0", config, newFaultProxy(t, l, c.ns, "executor-"+c.ns))
	waits := func(s v1alpha1.RemediationStatus) *v1alpha1.Entry {
		for i := range s.Journal {
			if s.Journal[i].Step == "0/manager" {
				return &s.Journal[i]
			}
		}
		return nil
	}
	c.reaches(t, time.Minute, "waits for MIG manager", func(s v1alpha1.RemediationStatus) bool { return waits(s) != nil })
	status := c.ends(t, managerDeadline+grace)
	unwatch()
	if status.Phase != m.phase || !strings.Contains(status.Message, m.says) {
		t.Errorf("%s: %s, want %s: %s", status.Phase, status.Message, m.phase, m.says)
	}
	if m.phase == v1alpha1.Parked {
		c.parked(t)
	} else if config := c.settled(t); (config == "all-1g.5gb") != (m.phase == v1alpha1.Failed) {
		t.Errorf("%s, and its config is %s", m.phase, config)
	}
	l.evictedOnce(t, []*cell{c})
	return status.Ended.Sub(waits(status).Began.Time)
}

// parked wants the node to be cordoned on purpose: by our mark, which says why.
func (c *cell) parked(t *testing.T) {
	t.Helper()
	n, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.node, metav1.GetOptions{})
	must(t, err)
	mark, err := diagnosis.OperationOn(n)
	must(t, err)
	if mark == nil || !n.Spec.Unschedulable || mark.ID != c.rem.UID || !strings.Contains(mark.Parked, "stuck") || n.Labels[migConfig] != mark.PriorMIGConfig {
		t.Errorf("unschedulable %v, mark %+v, config %s", n.Spec.Unschedulable, mark, n.Labels[migConfig])
	}
	leases, err := c.Client().CoordinationV1().Leases(c.ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(leases.Items) != 1 {
		t.Errorf("%d leases, want the leader's alone", len(leases.Items))
	}
}

// neverAlone watches until it is told to stop: whenever MIG manager is at work on the
// node, or the node is cordoned, it has an owner.
func (c *cell) neverAlone(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := c.Client().CoreV1().Nodes().Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: c.node}))
	must(t, err)
	var watching sync.WaitGroup
	watching.Go(func() {
		for e := range w.ResultChan() {
			n, ok := e.Object.(interface {
				GetLabels() map[string]string
				GetAnnotations() map[string]string
			})
			if ok && n.GetLabels()[migState] == "pending" && n.GetAnnotations()[diagnosis.OperationAnnotation] == "" {
				t.Errorf("MIG manager works on the node, and nobody owns that: %v", n.GetLabels())
			}
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		watching.Wait()
	})
	t.Cleanup(stop)
	return stop
}
