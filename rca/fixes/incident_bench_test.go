package fixes

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// BenchmarkIncident is what one incident costs: own-ms of all rules (rules-ms),
// candidates, search for victims and ranking, and apart from that whatif-ms in which the
// scheduler's own code judges and proves. The view of the cluster, view-ms, is shared by
// all incidents. own/filterpass is own time by that of one bare pass of the scheduler's
// filters over the same nodes.
func BenchmarkIncident(b *testing.B) {
	asks := []string{"nvidia.com/mig-2g.10gb", "nvidia.com/mig-3g.20gb", "nvidia.com/mig-4g.20gb", "nvidia.com/gpu", "nvidia.com/mig-9g.90gb"}
	own := map[int]float64{}
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			st := rcatest.Troubled(n, asks...)
			incidents := incident.Group(st.Pods, st.Owner)
			if len(incidents) != len(asks) {
				b.Fatalf("%d incidents", len(incidents))
			}
			first, done, err := view.Open(b.Context(), st, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer done()
			var t timed
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				begin := busy(b)
				w := view.New(st)
				w.Snapshot = first.Snapshot
				t.view += busy(b) - begin
				for _, i := range incidents {
					t.incident(b, w, i)
				}
			}
			rounds := float64(b.N)
			ms := func(d time.Duration) float64 { return d.Seconds() * 1000 / rounds }
			own[n] = ms(t.own) / float64(len(asks))
			b.ReportMetric(own[n], "own-ms/incident")
			b.ReportMetric(ms(t.whatif)/float64(len(asks)), "whatif-ms/incident")
			b.ReportMetric(ms(t.rules)/float64(len(asks)), "rules-ms/incident")
			b.ReportMetric(float64(t.own)/float64(t.pass), "own/filterpass")
			b.ReportMetric(ms(t.view), "view-ms")
			b.ReportMetric(float64(t.tries)/rounds/float64(len(asks)), "proofs/incident")
			if n > 1000 && own[1000] > 0 {
				b.ReportMetric(own[n]/own[1000], "growth")
			}
		})
	}
}

// busy is the processor time of this thread: on a machine that others use too the clock
// tells of them.
func busy(b *testing.B) time.Duration {
	b.Helper()
	const thread = 1 // RUSAGE_THREAD, Linux
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timed adds up where the time of a diagnosis goes.
type timed struct {
	own, whatif, view time.Duration
	rules, pass       time.Duration // the part of own that all rules take; one bare pass of the scheduler's filters
	tries             int
}

func (t *timed) incident(b *testing.B, w *view.Cluster, i incident.Incident) {
	begin, whatif := busy(b), time.Duration(0)
	k, err := causes.Open(evict.NewLedger(w), i)
	if err != nil {
		b.Fatal(err)
	}
	judged := busy(b)
	if k.Verdict, err = w.Snapshot.Explain(b.Context(), k.Pod); err != nil {
		b.Fatal(err)
	}
	whatif += busy(b) - judged
	ruled := busy(b)
	nodes, causes := k.Judge()
	t.rules += busy(b) - ruled
	c := New(k, nil, nil, nil)
	best, err := c.bestOf(b.Context(), c.candidates(nodes), func(ctx context.Context, f *candidate) error {
		begin := busy(b)
		err := c.prove(ctx, f)
		whatif += busy(b) - begin
		t.tries++
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	fixes := c.ranked(best, causes)
	t.own += busy(b) - begin - whatif
	t.whatif += whatif
	passed := busy(b)
	if _, err := w.Snapshot.Fits(b.Context(), c.Pod); err != nil {
		b.Fatal(err)
	}
	t.pass += busy(b) - passed
	if best := fixes[0].fix; len(nodes) != len(w.Nodes) || len(causes) < 3 || best.Proof.Verdict != diagnosis.Schedules {
		b.Fatalf("%d nodes, %d causes, fix %q", len(nodes), len(causes), best.Title)
	}
}
