package desk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Who says yes has the plan recorded and approved in their own name, from a place that knows
// them by an id as with a client of their own; again it is the same word, and nothing else is
// written.
func TestApprove(t *testing.T) {
	for via, enter := range map[string]func(*memory) Visitor{
		"slack": func(m *memory) Visitor { return m.slack(t, "U0ADA") },
		"web":   func(m *memory) Visitor { return m.web(t, "ada") },
	} {
		m := newMemory(t)
		v := enter(m)
		if v.User != "ada" || !slices.Equal(v.Groups, []string{"admins"}) {
			t.Errorf("%s: %s of %v", via, v.User, v.Groups)
		}
		for range 3 {
			a, err := v.Approve(t.Context(), m.id, m.best.Plan)
			if err != nil || a.Approval == nil || a.Approval.Spec.Approver != "ada" || !slices.Equal(a.Approval.Spec.Groups, []string{"admins"}) || a.Plan.Name != m.best.Plan || a.Why != "" {
				t.Errorf("%s: %+v, %v", via, a, err)
			}
		}
		rem := m.rem(t)
		if rem.Spec.Requester != "ada" || rem.Spec.Incident != m.id || plan.Name(rem.Spec) != rem.Name || rem.Spec.Carrier != "" {
			t.Errorf("%s: %+v", via, rem.Spec)
		}
		if diff := cmp.Diff([]string{"ada says Approve by " + via}, m.approvals(t)); diff != "" {
			t.Error(diff)
		}
		end := m.best.Plan[62:]
		if diff := cmp.Diff([]string{"create Remediation " + end, "create Approval " + end}, m.written()); diff != "" {
			t.Errorf("%s: %s", via, diff)
		}
		m.becomes(t, v1alpha1.Running, "")
		if a, err := v.Approve(t.Context(), m.id, m.best.Plan); err != nil || a.Approval == nil {
			t.Errorf("%s, while it runs: %+v, %v", via, a, err)
		}
	}
}

// What may not be approved is refused for the reason, and nothing is decided on.
func TestWhatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*testing.T, *memory)
		user   string
		plan   string
		is     error
		says   string
		writes int
	}{
		"another cluster by now": {func(t *testing.T, m *memory) {
			must(t, m.client.CoreV1().Nodes().Delete(t.Context(), "gpu-1", metav1.DeleteOptions{}))
		}, "U0ADA", "", plan.ErrStale, "the cluster has changed; fix 1 is now ", 0},
		"nobody waits": {func(t *testing.T, m *memory) {
			must(t, m.client.CoreV1().Pods("default").Delete(t.Context(), m.waiting(t), metav1.DeleteOptions{}))
		}, "U0ADA", "", plan.ErrStale, "waits any more", 0},
		"no such plan":     {nil, "U0ADA", strings.Repeat("0", 64), plan.ErrStale, "the cluster has changed; fix 1 is now ", 0},
		"no right to plan": {func(_ *testing.T, m *memory) { m.forbids("remediations") }, "U0ADA", "", plan.ErrRefused, "no right", 1},
		"no right to say":  {func(_ *testing.T, m *memory) { m.forbids("approvals") }, "U0ADA", "", plan.ErrRefused, "no right", 2},
		"the kill switch": {func(t *testing.T, m *memory) {
			must(t, m.client.Tracker().Add(guards("", "true")))
		}, "U0ADA", "", plan.ErrRefused, "is held back now: unpend is paused by a person", 0},
		"limits of no sense": {func(t *testing.T, m *memory) {
			must(t, m.client.Tracker().Add(guards("coolDown: banana", "false")))
		}, "U0ADA", "", plan.ErrRefused, "coolDown is banana", 0},
		"it is done": {func(t *testing.T, m *memory) { m.recorded(t, v1alpha1.Succeeded, "default/x runs") }, "U0ADA", "", plan.ErrRefused, "the plan is Succeeded already: default/x runs", 0},
		"of another, under way": {func(t *testing.T, m *memory) {
			_, err := m.slack(t, "U0BOB").Approve(t.Context(), m.id, m.best.Plan)
			must(t, err)
			m.becomes(t, v1alpha1.Running, "")
			m.custom.ClearActions()
		}, "U0ADA", "", plan.ErrRefused, "the plan is carried out already, approved by bob", 0},
		"another plan of the incident is under way": {func(t *testing.T, m *memory) {
			m.recorded(t, v1alpha1.Running, "")
		}, "U0ADA", strings.Repeat("0", 64), plan.ErrRefused, "for this incident is under way already: repartition gpu-1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(t)
			if tc.change != nil {
				tc.change(t, m)
				m.client.ClearActions()
			}
			if tc.plan == "" {
				tc.plan = m.best.Plan
			}
			a, err := m.slack(t, tc.user).Approve(t.Context(), m.id, tc.plan)
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) || a.Approval != nil {
				t.Errorf("%+v, %v, want %q", a, err, tc.says)
			}
			if got := m.written(); len(got) != tc.writes {
				t.Errorf("written: %q", got)
			}
		})
	}
}

// Of who is nobody nothing is read.
func TestNobody(t *testing.T) {
	m := newMemory(t)
	m.client.ClearActions()
	m.custom.ClearActions()
	for _, c := range []plan.Caller{{}, {Via: "slack", ID: "U0EVE"}, {Via: "web", ID: "U0ADA"}} {
		if _, err := m.desk.Known(m.people(t), c); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), " is nobody: ") {
			t.Errorf("%s: %v", c, err)
		}
	}
	if n := len(m.client.Actions()) + len(m.custom.Actions()); n != 0 || len(m.as) != 0 {
		t.Errorf("%d requests, as %q", n, m.as)
	}
}

// Of a plan that two have to approve, who asked for it is none of them, and is told why; the
// words of two others are taken.
func TestTwoPersons(t *testing.T) {
	m := newMemory(t, guards("twoPersons: {evictions: 0}", "false"))
	for range 2 {
		a, err := m.slack(t, "U0ADA").Approve(t.Context(), m.id, m.best.Plan)
		if err != nil || a.Approval != nil || a.Why != "it stops 3 pods, one person may stop 0" {
			t.Errorf("who asked: %+v, %v", a, err)
		}
	}
	for _, id := range []string{"U0BOB", "U0CAT", "U0BOB"} {
		if a, err := m.slack(t, id).Approve(t.Context(), m.id, m.best.Plan); err != nil || a.Approval == nil {
			t.Errorf("%s: %+v, %v", id, a, err)
		}
	}
	if diff := cmp.Diff([]string{"bob says Approve by slack", "cat says Approve by slack"}, m.approvals(t)); diff != "" {
		t.Error(diff)
	}
	if by := m.rem(t).Spec.Requester; by != "ada" {
		t.Errorf("asked for by %s", by)
	}
}

// However often one person clicks at once, and from however many places, there is one plan and
// one approval: R13 without an API server's help.
func TestR13ClicksAtOnce(t *testing.T) {
	m := newMemory(t)
	at := []Visitor{m.slack(t, "U0ADA"), m.slack(t, "U0ADA"), m.web(t, "ada")}
	var all sync.WaitGroup
	answers := make([]string, 3*len(at))
	for i := range answers {
		all.Go(func() {
			a, err := at[i%len(at)].Approve(t.Context(), m.id, m.best.Plan)
			answers[i] = fmt.Sprint(err)
			if err == nil {
				answers[i] = string(a.Plan.UID) + " " + string(a.Approval.UID)
			}
		})
	}
	all.Wait()
	if slices.Sort(answers); len(slices.Compact(answers)) != 1 {
		t.Errorf("%q", answers)
	}
	if got := m.approvals(t); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// A no is said of a plan that is recorded, or recorded for it; it keeps who said it, and why.
func TestReject(t *testing.T) {
	m := newMemory(t)
	for range 2 {
		if a, err := m.slack(t, "U0BOB").Reject(t.Context(), m.id, m.best.Plan, ": not now"); err != nil || a.Approval == nil {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if diff := cmp.Diff([]string{"bob says Reject by slack: not now"}, m.approvals(t)); diff != "" {
		t.Error(diff)
	}
	m.becomes(t, v1alpha1.Rejected, "bob said no: not now")
	if a, err := m.slack(t, "U0ADA").Reject(t.Context(), m.id, m.best.Plan, ""); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), "the plan is Rejected already: bob said no") || a.Approval != nil {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := m.slack(t, "U0ADA").Approve(t.Context(), m.id, m.best.Plan); err != nil || a.Approval == nil {
		t.Errorf("somebody wants it yet: %+v, %v", a, err)
	}
	if diff := cmp.Diff([]string{"ada says Approve by slack"}, m.approvals(t)); diff != "" {
		t.Error(diff)
	}
}

// A dry run tells the steps and what is in the way, and writes nothing.
func TestDryRun(t *testing.T) {
	m := newMemory(t, guards("twoPersons: {evictions: 0}", "true"))
	got, err := m.slack(t, "U0ADA").DryRun(t.Context(), m.id, m.best.Plan)
	must(t, err)
	if got.Fix.Plan != m.best.Plan || len(got.Steps) < 8 || !slices.ContainsFunc(got.Steps, func(s string) bool { return strings.HasPrefix(s, "evict ") }) ||
		!strings.HasPrefix(got.Held, "unpend is paused") || got.Persons != 2 || got.Why != "it stops 3 pods, one person may stop 0" {
		t.Errorf("%+v", got)
	}
	if w := m.written(); len(w) != 0 {
		t.Errorf("written: %q", w)
	}
	if _, err := m.slack(t, "U0ADA").DryRun(t.Context(), m.id, strings.Repeat("0", 64)); !errors.Is(err, plan.ErrStale) {
		t.Error(err)
	}
}
