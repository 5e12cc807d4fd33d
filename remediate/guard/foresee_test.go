package guard

import (
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// What is foreseen of a plan that nobody has recorded is what is judged of it once somebody
// has, but for what only its record or its turn decides.
func TestForeseenIsJudged(t *testing.T) {
	undone := func() *v1alpha1.Remediation {
		r := in(planFor(2, "gpu-1"), v1alpha1.Succeeded, noon.Add(-2*time.Hour))
		r.Spec.Actions[0].Relies["mig"] = "all-2g.10gb success mixed"
		return r
	}
	for name, tc := range map[string]struct {
		make func(*setting)
		rule string // empty: nothing is foreseen, though it may be judged
	}{
		"nothing is against it":     {func(*setting) {}, ""},
		"paused":                    {func(s *setting) { s.view.Paused = true }, "paused"},
		"the breaker is open":       {func(s *setting) { s.view.Breaker = BreakerState{Open: true, Since: noon, Why: "x"} }, "breaker"},
		"a freeze window":           {func(s *setting) { s.limits.Freeze = []Freeze{{Cron: "0 12 * * *", Duration: 10 * time.Minute}} }, "freeze"},
		"to and fro":                {func(s *setting) { s.add(undone()) }, "opposite"},
		"too many at once":          {func(s *setting) { evicting(s.plan, 31) }, "evictions-per-plan"},
		"changed of late":           {func(s *setting) { s.add(in(planFor(2, "gpu-1"), v1alpha1.Failed, noon.Add(-time.Minute))) }, "cool-down"},
		"another node was":          {func(s *setting) { s.add(in(planFor(2, "gpu-2"), v1alpha1.Failed, noon.Add(-time.Minute))) }, ""},
		"parked":                    {func(s *setting) { marked(s.view.Nodes[0], planFor(2, "gpu-1"), "stuck") }, "node-busy"},
		"worked on":                 {func(s *setting) { s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Running, noon))) }, "node-busy"},
		"another node is worked on": {func(s *setting) { s.add(in(planFor(2, "gpu-2"), v1alpha1.Running, noon)) }, ""},
		"too many are out of use": {func(s *setting) {
			for i := range 4 {
				cordon(s.view.Nodes[10+i], noon)
			}
		}, "pool-unavailable"},
		"the last of its shape": {func(s *setting) { s.offers("gpu-1"); s.wants("gpu-ffffffffff") }, "last-healthy"},
		"one of two of a shape": {func(s *setting) { s.offers("gpu-1", "gpu-2"); s.wants("gpu-ffffffffff") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet()
			tc.make(s)
			want := s.judge()
			s.plan.Name, s.plan.UID, s.plan.CreationTimestamp.Time = "", "", time.Time{}
			got := s.limits.Foresee(s.view).Judge(s.plan, s.view.Wanted)
			if got.Rule != tc.rule {
				t.Fatalf("foreseen: %+v, want rule %q", got, tc.rule)
			}
			if tc.rule != "" && (got.Rule != want.Rule || got.Decision != want.Decision || got.Reason != want.Reason) {
				t.Errorf("foreseen %+v, judged %+v", got, want)
			}
			if tc.rule == "" && got.Decision != Allow {
				t.Errorf("%+v", got)
			}
		})
	}
}
