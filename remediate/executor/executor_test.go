package executor

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// executor makes one that knows nothing but what is in the API.
func (c *cell) executor() *Executor {
	deps := c.deps
	deps.Observe = func(ctx context.Context, rem *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) error {
		if e != nil && result == audit.Begun {
			c.begins(e.Text)
		}
		if c.deps.Observe == nil {
			return nil
		}
		return c.deps.Observe(ctx, rem, e, result)
	}
	return New(Options{Deps: deps, Namespace: c.ns, Self: "executor", ActAs: c.actAs})
}

// recorded is the plan of a fix, in the API.
func (c *cell) recorded(t *testing.T, d diagnosis.Diagnosis, f diagnosis.Fix) *v1alpha1.Remediation {
	t.Helper()
	rem, err := plan.Store{Dynamic: c.Dynamic()}.Record(t.Context(), plan.Propose(plan.Found{State: c.state(t), Diagnosis: d, Fix: f}, "somebody", time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return rem
}

// forget takes all plans and decisions away: guard-rails look back at them, anybody's
// they were.
func (c *cell) forget(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, kind := range []schema.GroupVersionResource{v1alpha1.Approvals, v1alpha1.Remediations} {
		if err := c.Dynamic().Resource(kind).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func (c *cell) decide(t *testing.T, rem *v1alpha1.Remediation, who string, decision v1alpha1.Decision) {
	t.Helper()
	if _, err := (plan.Store{Dynamic: c.Dynamic()}).Decide(t.Context(), plan.NewApproval(rem, who, nil, decision)); err != nil {
		t.Fatal(err)
	}
}

// look has an executor look once; one that crashes leaves what it has done.
func (c *cell) look(t *testing.T, x *Executor, name string) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.crash.now = cancel
	again, err := x.Look(ctx, name)
	if ctx.Err() != nil && t.Context().Err() == nil {
		return 0, nil
	}
	return again, err
}

// carriedOut looks until the plan has ended; made makes the executor of each look.
func (c *cell) carriedOut(t *testing.T, name string, made func() *Executor) *v1alpha1.Remediation {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for time.Now().Before(end) {
		again, err := c.look(t, made(), name)
		if err != nil {
			t.Fatal(err)
		}
		rem, err := plan.Store{Dynamic: c.Dynamic()}.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if rem.Status.Phase.Ended() {
			for _, e := range rem.Status.Journal {
				t.Logf("%-40s %s %s", e.Step, e.Ended.Sub(e.Began.Time).Round(time.Millisecond), e.Error)
			}
			t.Log(rem.Status.Phase, rem.Status.Message)
			return rem
		}
		<-time.After(min(again, 100*time.Millisecond))
	}
	t.Fatal("the plan has not ended")
	return nil
}

// A plan is carried out by what the API has: also when every look is by another
// executor, which knows nothing of the one before.
func TestExecutorCarriesOut(t *testing.T) {
	for name, forget := range map[string]bool{"one executor": false, "a new one at every look": true} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t)
			node, d, f, _ := repartition(t, c)
			rem := c.recorded(t, d, f)
			if plan.Name(rem.Spec) != rem.Name {
				t.Fatal("the API server gave back another plan")
			}
			file := filepath.Join(t.TempDir(), "trail.jsonl")
			trail := &Trail{Path: file, Self: "executor", Now: time.Now}
			c.deps.Observe = trail.Observe
			var said lines
			c.deps.Logger = slog.New(slog.NewJSONHandler(&said, nil))
			x := c.executor()
			if _, err := x.Look(t.Context(), rem.Name); err != nil {
				t.Fatal(err)
			}
			c.wrote(t, nil)
			c.decide(t, rem, "alice", v1alpha1.Approve)
			made := func() *Executor { return x }
			if forget {
				made = c.executor
			}
			rem = c.carriedOut(t, rem.Name, made)
			if rem.Status.Phase != v1alpha1.Succeeded || !strings.HasPrefix(rem.Status.Pod, c.ns+"/training-") || rem.Status.Evicted != 3 || fmt.Sprint(rem.Status.ApprovedBy) != "[alice]" {
				t.Errorf("%+v", rem.Status)
			}
			for range 2 { // looked at once more it says no more
				if _, err := x.Look(t.Context(), rem.Name); err != nil {
					t.Error(err)
				}
			}
			said.of(t, rem, forget)
			c.evictions(t, f, 3)
			if n := c.node(t, node); n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
				t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
			}
			if err := trail.Close(); err != nil {
				t.Error(err)
			}
			onRecord(t, file, rem)
			leases, err := c.Client().CoordinationV1().Leases(c.ns).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(leases.Items) != 0 {
				t.Errorf("%d locks are left, %v", len(leases.Items), err)
			}
		})
	}
}

// onRecord wants the trail whole, with a line before and after each step, and its head
// in the plan.
func onRecord(t *testing.T, file string, rem *v1alpha1.Remediation) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(bytes.NewReader(data), rem.Status.AuditHead)
	if want := 2 + 2*len(rem.Status.Journal); err != nil || report.Lines != want || report.Head != rem.Status.AuditHead {
		t.Errorf("%+v, want %d lines and head %s: %v", report, want, rem.Status.AuditHead, err)
	}
}

// What cannot be put on record is not begun.
func TestNothingIsBegunOffTheRecord(t *testing.T) {
	c := newCell(t)
	_, d, f, holders := repartition(t, c)
	trail := &Trail{Path: filepath.Join(t.TempDir(), "no", "such", "folder"), Self: "executor", Now: time.Now}
	c.deps.Observe = trail.Observe
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	if _, err := c.executor().Look(t.Context(), rem.Name); err == nil || !strings.Contains(err.Error(), "audit trail") {
		t.Error(err)
	}
	c.untouched(t, holders...)
	c.wrote(t, nil)
}

// A no ends a plan, and nothing is written.
func TestRejectedPlan(t *testing.T) {
	c := newCell(t)
	_, d, f, holders := repartition(t, c)
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "bob", v1alpha1.Reject)
	if rem = c.carriedOut(t, rem.Name, c.executor); rem.Status.Phase != v1alpha1.Rejected || rem.Status.Message != "bob said no" {
		t.Errorf("%+v", rem.Status)
	}
	c.untouched(t, holders...)
	c.evictions(t, f, 0)
}

// What a plan says of itself beside its actions is the requester's word: it is held
// against what is found.
func TestMisstatedPlanIsRefused(t *testing.T) {
	c := newCell(t)
	_, d, f, holders := repartition(t, c)
	for says, edit := range map[string]func(*v1alpha1.RemediationSpec){
		"spec.priority is 9, the pods that wait have 0":                            func(s *v1alpha1.RemediationSpec) { s.Priority = 9 },
		"spec.kind is EvictPods, the plan is RepartitionGPU":                       func(s *v1alpha1.RemediationSpec) { s.Kind = diagnosis.EvictPods },
		"spec.victimPriority is -5, the pods that stop have 0":                     func(s *v1alpha1.RemediationSpec) { s.VictimPriority = -5 },
		"spec.kinds are [QuarantineGPU], the plan takes [RepartitionGPU]":          func(s *v1alpha1.RemediationSpec) { s.Kinds = []diagnosis.FixKind{diagnosis.QuarantineGPU} },
		`spec.title is "look at a node", the plan is to ` + f.Title:                func(s *v1alpha1.RemediationSpec) { s.Title = "look at a node" },
		fmt.Sprintf(`spec.node is "", the pod was proved to fit %q`, f.Proof.Node): func(s *v1alpha1.RemediationSpec) { s.Node = "" },
		"spec.waiting has pod " + c.ns + "/" + holders[0].Name + ", which is not of the plan's workload": func(s *v1alpha1.RemediationSpec) {
			s.Waiting = append(s.Waiting, v1alpha1.Pod{Name: "x", UID: holders[0].UID})
		},
	} {
		rem := plan.Propose(plan.Found{State: c.state(t), Diagnosis: d, Fix: f}, "somebody", time.Now())
		edit(&rem.Spec)
		rem, err := plan.Store{Dynamic: c.Dynamic()}.Record(t.Context(), rem)
		if err != nil {
			t.Fatal(err)
		}
		c.decide(t, rem, "alice", v1alpha1.Approve)
		if rem = c.carriedOut(t, rem.Name, c.executor); rem.Status.Phase != v1alpha1.Refused || rem.Status.Message != says {
			t.Errorf("%s %s, want %s", rem.Status.Phase, rem.Status.Message, says)
		}
	}
	c.forget(t)
	c.untouched(t, holders...)
	c.evictions(t, f, 0)
}
