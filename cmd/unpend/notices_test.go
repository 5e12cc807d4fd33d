package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher"
)

// listening is a bus, embedded and real, that can be away, and who reads the ends of
// plans from it.
type listening struct {
	dir string

	mu    sync.Mutex
	bus   *bus.Bus
	heard []notice.Notice
	stop  func()
}

// open has NATS there, on what its folder holds, and reads on.
func (l *listening) open(t *testing.T) {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{StoreDir: l.dir})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		err := b.Consume(ctx, bus.Outcomes, "listening", func(_ context.Context, key string, body []byte) error {
			var n notice.Notice
			err := json.Unmarshal(body, &n)
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.heard = append(l.heard, n); key != n.Incident+"."+n.Plan {
				err = errors.New("its key is " + key)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bus = b
	l.stop = sync.OnceFunc(func() {
		cancel()
		reading.Wait()
		b.Close()
	})
	t.Cleanup(l.stop)
}

func (l *listening) now(context.Context) (*bus.Bus, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bus, nil
}

func (l *listening) all() []notice.Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.heard)
}

// leads starts an executor in this process that tells of ends, until it is stopped.
func (c *cell) leads(t *testing.T, name string, l *listening, registry prometheus.Registerer) (stop func()) {
	t.Helper()
	x := executor.New(executor.Options{Namespace: c.ns, Self: "executor", Notifier: notices{l.now}, Registerer: registry,
		Deps: executor.Deps{Client: c.Client(), Dynamic: c.Dynamic(), Now: time.Now, Poll: 100 * time.Millisecond,
			Deadlines: act.Deadlines{Evict: time.Minute, Leave: time.Minute, Manager: 6 * time.Second, Wedge: 3 * time.Second, Run: time.Minute}}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, c.Config(), name) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// tells waits until the plan says of its end that somebody was told, or not.
func (c *cell) tells(t *testing.T, status metav1.ConditionStatus, says string) {
	t.Helper()
	c.reaches(t, time.Minute, "says of its end that it was told: "+string(status), func(s v1alpha1.RemediationStatus) bool {
		told := meta.FindStatusCondition(s.Conditions, v1alpha1.Told)
		return told != nil && told.Status == status && strings.Contains(told.Message, says)
	})
}

// figures are the executor's metrics that are not zero.
func figures(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, label := range m.Label {
				name += " " + label.GetValue()
			}
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 {
				out[name] = v
			}
		}
	}
	return out
}

// A node that is parked while the bus is away: its plan says that nobody was told yet,
// and once the bus is back, one notice arrives, however often it is told and by however
// many leaders; the next end of the plan's kind is news. The figures say the same.
func TestEndsAreHandedOver(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the real control plane")
	}
	l := newLane(t)
	c := l.newCell(t)
	setGuards(t, l, c.ns, "coolDown: 0s\nnodesInFlight: 9\npoolUnavailablePercent: 100\n")
	l.AddNode(t, all1g(c.ns+"-spare")) // or the other's node is the last of its layout
	l.stack.SetFaults(c.node, sim.Faults{Wedge: true})
	from := &listening{dir: t.TempDir()}
	from.open(t)
	from.stop() // away
	registry := prometheus.NewRegistry()
	stop := c.leads(t, "first", from, registry)
	c.approve(t)
	c.reaches(t, time.Minute, "is parked", func(s v1alpha1.RemediationStatus) bool { return s.Phase == v1alpha1.Parked })
	c.tells(t, metav1.ConditionFalse, "not told yet, it is tried again: ")
	if told := time.Since(c.rem.Status.Ended.Time); told > time.Minute {
		t.Errorf("it says so after %s", told)
	}
	want := map[string]float64{"unpend_remediation_parked_nodes": 1, "unpend_remediations parked": 1, "unpend_remediations_total parked": 1}
	controlplane.Eventually(t, 20*time.Second, "the figures", func() (bool, string) {
		diff := cmp.Diff(want, figures(t, registry))
		return diff == "", diff
	})
	if len(from.all()) > 0 {
		t.Errorf("heard already: %+v", from.all())
	}

	from.open(t)
	back := time.Now()
	c.tells(t, metav1.ConditionTrue, "published")
	t.Logf("told %.1f s after the bus was back", time.Since(back).Seconds())
	parked := notice.Notice{What: "parked", Incident: c.rem.Spec.Incident, Plan: c.rem.Name, Workload: watcher.Ref{Kind: "Job", Namespace: c.ns, Name: "training"},
		Title: c.rem.Spec.Title, Node: c.node, Reason: c.rem.Status.Message, Since: c.rem.Status.Ended.UTC(), Approvers: []string{approver}}
	from.hears(t, parked)

	// The answer to what was told got lost, and another leads.
	stop()
	meta.RemoveStatusCondition(&c.rem.Status.Conditions, v1alpha1.Told)
	must(t, c.store().Save(t.Context(), c.rem))
	c.leads(t, "second", from, prometheus.NewRegistry())
	c.tells(t, metav1.ConditionTrue, "published")

	other := l.cellFor(t, c.ns, l.Namespace(t))
	other.approve(t)
	if status := other.ends(t, time.Minute); status.Phase != v1alpha1.Succeeded {
		t.Errorf("%s: %s", status.Phase, status.Message)
	}
	other.tells(t, metav1.ConditionTrue, "published")
	from.hears(t, parked, notice.Notice{What: "succeeded", Incident: other.rem.Spec.Incident, Plan: other.rem.Name, Workload: watcher.Ref{Kind: "Job", Namespace: other.ns, Name: "training"},
		Title: other.rem.Spec.Title, Node: other.node, Reason: other.rem.Status.Message, Since: other.rem.Status.Ended.UTC(), Approvers: []string{approver}})
}

// hears wants these notices to have arrived, in this order, and no other.
func (l *listening) hears(t *testing.T, want ...notice.Notice) {
	t.Helper()
	controlplane.Eventually(t, 10*time.Second, "the notices have arrived", func() (bool, string) {
		diff := cmp.Diff(want, l.all())
		return diff == "", diff
	})
}
