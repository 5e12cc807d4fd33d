package guard

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// remaking is a plan to make a Job again, by which n pods stop.
func remaking(i, n int) *v1alpha1.Remediation {
	r := planFor(i, "gpu-1")
	a := diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: diagnosis.Target{Kind: "Job", Namespace: "ml", Name: "training", UID: "job"}, Patch: []byte(`{"spec":{}}`)}
	for k := range n {
		a.Stops = append(a.Stops, diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: fmt.Sprintf("training-%d", k), UID: fmt.Sprintf("pod-%d-%d", i, k)})
	}
	r.Spec.Nodes, r.Spec.Actions = nil, []diagnosis.Action{a}
	return r
}

// A pod that stops because its workload is made again counts as one that is evicted: per
// plan, within the hour, and for how many persons have to agree.
func TestStopsCountAlike(t *testing.T) {
	both := remaking(1, 20)
	evicting(both, 11)
	for _, tc := range []struct {
		name   string
		plan   *v1alpha1.Remediation
		past   *v1alpha1.Remediation
		reason string
	}{
		{"30 of a plan", remaking(1, 30), nil, ""},
		{"31 of a plan", remaking(1, 31), nil, "the plan stops 31 pods, the limit is 30: choose another fix, or raise evictionsPerPlan in ConfigMap unpend-guards"},
		{"20 and 11 evicted", both, nil, "the plan stops 31 pods, the limit is 30: choose another fix, or raise evictionsPerPlan in ConfigMap unpend-guards"},
		{"100 of the hour", remaking(1, 10), restarted(2, 90), ""},
		{"101 of the hour", remaking(1, 10), restarted(2, 91), "91 pods were or are being stopped within the hour, with the 10 of this plan it would be 101, the limit is 100: wait, or raise evictionsPerHour in ConfigMap unpend-guards"},
	} {
		s := quiet()
		s.plan, s.view.Plans = tc.plan, []v1alpha1.Remediation{*tc.plan}
		if tc.past != nil {
			s.add(tc.past)
		}
		if got := s.judge(); got.Reason != tc.reason {
			t.Errorf("%s: %+v, want %q", tc.name, got, tc.reason)
		}
	}
	higher := remaking(1, 1)
	higher.Spec.VictimPriority = 1
	for why, plan := range map[string]*v1alpha1.Remediation{"": remaking(1, 10), "it stops 11 pods, one person may stop 10": remaking(1, 11), "it stops a pod of priority 1 for pods of priority 0": higher} {
		if n, got := Defaults().Persons(plan); got != why || (n == 2) != (why != "") {
			t.Errorf("%d persons: %q, want %q", n, got, why)
		}
	}
	if f := Defaults().Figures(View{Now: noon, Plans: []v1alpha1.Remediation{*restarted(2, 4)}}); f.StoppedLastHour != 4 || f.EvictedLastHour != 1 {
		t.Errorf("%+v", f)
	}
}

// restarted is a plan of this hour that has evicted one pod, and stopped the others of n in
// another way.
func restarted(i, n int) *v1alpha1.Remediation {
	r := older(in(remaking(i, n), v1alpha1.Succeeded, noon.Add(-time.Minute)))
	r.Status.Evicted = 1
	for k := range n - 1 {
		r.Status.Restarted = append(r.Status.Restarted, v1alpha1.Pod{Name: "x", UID: types.UID(fmt.Sprint(k))})
	}
	return r
}

// Who stops is named one by one, in the namespace of what is written to.
func TestStopsAreNamed(t *testing.T) {
	for want, edit := range map[string]func(*diagnosis.Target){
		`the plan is not complete: action 0 ("recreate"): a pod that stops: "" is not a uid; nothing is written for it, ask for a new one`:                            func(s *diagnosis.Target) { s.UID = "" },
		`the plan is not complete: action 0 ("recreate"): a pod that stops: it cannot be done to a "Node", only to Pod; nothing is written for it, ask for a new one`: func(s *diagnosis.Target) { s.Kind = "Node" },
		`the plan is not complete: action 0 ("recreate"): pod other/training-0 is none of ml/training; nothing is written for it, ask for a new one`:                  func(s *diagnosis.Target) { s.Namespace = "other" },
		`the plan is not complete: action 0 ("recreate"): a pod that stops: "*" is not the name of one object; nothing is written for it, ask for a new one`:          func(s *diagnosis.Target) { s.Name = "*" },
		``: func(*diagnosis.Target) {},
	} {
		s := quiet()
		s.plan = remaking(1, 2)
		edit(&s.plan.Spec.Actions[0].Stops[0])
		if got := s.judge(); got.Reason != want {
			t.Errorf("%q, want %q", got.Reason, want)
		}
	}
}
