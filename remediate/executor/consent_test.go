package executor

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// The pods that a plan stops, by whatever hand, are those that it named: the API server's
// audit log has no other pod evicted or deleted that ran when it began, whether an executor
// carried it out or a terminal.
func TestConsentEqualsEffect(t *testing.T) {
	stopped, runs := 0, 0
	for _, tc := range []struct {
		name string
		make func(*testing.T, *cell) (diagnosis.Diagnosis, diagnosis.Fix)
		app  string // of the workload that waits
		run  int    // its pods that run in the end
		want int    // pods that stop
	}{
		{"a Job of which one runs", func(t *testing.T, c *cell) (diagnosis.Diagnosis, diagnosis.Fix) {
			_, d, f := c.half(t, "Job")
			return d, f
		}, "training", 2, 1},
		{"a Deployment of which two run, with room to surge", func(t *testing.T, c *cell) (diagnosis.Diagnosis, diagnosis.Fix) {
			_, d, f := c.most(t, "Deployment", 2)
			return d, f
		}, "serving", 3, 2},
		{"a repartition", func(t *testing.T, c *cell) (diagnosis.Diagnosis, diagnosis.Fix) {
			_, d, f, _ := repartition(t, c)
			return d, f
		}, "", 0, 3},
	} {
		for _, by := range []string{"executor", "terminal"} {
			t.Run(tc.name+", by "+by, func(t *testing.T) {
				c := newCell(t)
				d, f := tc.make(t, c)
				before, began := c.pods(t), time.Now()
				if by == "terminal" {
					c.deps.Requester = "alice"
					if _, err := c.apply(t, d, f); err != nil {
						t.Fatal(err)
					}
				} else {
					rem := c.recorded(t, d, f)
					c.decide(t, rem, "alice", v1alpha1.Approve)
					ended(t, c.carriedOut(t, rem.Name, c.executor), v1alpha1.Succeeded, c.ns+"/", " runs")
				}
				if tc.app != "" {
					c.onlyRunning(t, tc.app, tc.run)
				}
				ended(t, c.read(t, f.Plan), v1alpha1.Succeeded, " runs")
				if is := c.read(t, f.Plan).Status; is.After == nil || is.After.Waiting != 0 || len(is.After.Stopped) != 0 {
					t.Errorf("%+v: %s", is.After, is.Message)
				}
				named, is := c.named(f), c.stoppedSince(t, before, began)
				if !maps.Equal(named, is) || len(is) != tc.want {
					t.Errorf("%v stopped, the plan names %v", is, named)
				}
				stopped, runs = stopped+len(is), runs+1
			})
		}
	}
	t.Logf("%d live plans: %d pods stopped, all named, 0 others", runs, stopped)
}

// onlyRunning waits until so many pods of an app run and there are no others of it.
func (c *cell) onlyRunning(t *testing.T, app string, n int) {
	t.Helper()
	controlplane.Eventually(t, 30*time.Second, "the rollout is done", func() (bool, string) {
		of, run := 0, 0
		for _, p := range c.pods(t) {
			if p.Labels["app"] != app {
				continue
			}
			of++
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				run++
			}
		}
		return of == n && run == n, fmt.Sprintf("%d of %d run", run, of)
	})
}

// named are the pods that a fix says stop.
func (c *cell) named(f diagnosis.Fix) map[string]bool {
	out := map[string]bool{}
	for _, a := range f.Actions {
		for _, p := range a.Stopped() {
			out[p.Namespace+"/"+p.Name] = true
		}
	}
	return out
}

// stoppedSince are the pods of those that ran that were evicted or deleted since, by
// anybody, as the audit log has it.
func (c *cell) stoppedSince(t *testing.T, before []corev1.Pod, began time.Time) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, e := range c.AuditEvents(t) {
		stops := e.Verb == "delete" && e.ObjectRef.Subresource == "" || e.ObjectRef.Subresource == "eviction"
		if e.ObjectRef.Resource != "pods" || !stops || e.ResponseStatus.Code >= 300 || e.Received.Before(began.Add(-time.Second)) {
			continue
		}
		if slices.ContainsFunc(before, func(p corev1.Pod) bool {
			return p.Namespace == e.ObjectRef.Namespace && p.Name == e.ObjectRef.Name && p.Status.Phase == corev1.PodRunning
		}) {
			out[e.ObjectRef.Namespace+"/"+e.ObjectRef.Name] = true
		}
	}
	return out
}
