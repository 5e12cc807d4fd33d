package guard

import (
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// yesterday makes a plan that succeeded just less than a day ago.
func yesterday(r *v1alpha1.Remediation) *v1alpha1.Remediation {
	return older(in(r, v1alpha1.Succeeded, noon.Add(-24*time.Hour+time.Nanosecond)))
}

func relaying(r *v1alpha1.Remediation) *diagnosis.Action { return &r.Spec.Actions[0] }

func TestOpposite(t *testing.T) {
	back := func(what string) Verdict {
		return Verdict{Refuse, "opposite", "it would " + what + ", which plan gpu-0000000002#1 (00000002) changed at 2026-11-19T12:00:00Z; " +
			"within 24h nothing is changed to and fro: free or add GPUs instead, or lower oppositeWithin in ConfigMap unpend-guards", time.Time{}, v1alpha1.Refused}
	}
	config := func(s *setting) { relaying(s.plan).Relayout.Config = "all-1g.5gb" } // what plan 2 replaced
	layout := func(s *setting) { relaying(s.plan).Relayout.Layouts[0] = map[string]int{"1g.5gb": 2, "2g.10gb": 0} }
	opening := func(s *setting) {
		s.plan.Spec.Kind, s.plan.Spec.Kinds = diagnosis.UncordonNode, []diagnosis.FixKind{diagnosis.UncordonNode}
		s.plan.Spec.Actions = []diagnosis.Action{{Verb: diagnosis.VerbUncordon, Target: diagnosis.Target{Kind: "Node", Name: "gpu-1", UID: "uid-gpu-1"}}}
	}
	closing := func() *v1alpha1.Remediation {
		r := planFor(2, "gpu-1")
		r.Spec.Actions, r.Spec.Kinds = nil, []diagnosis.FixKind{diagnosis.QuarantineGPU}
		return yesterday(r)
	}
	check(t, []edge{
		{"the config", func(s *setting) { s.add(yesterday(planFor(2, "gpu-1"))) }, // the same again is not back
			func(s *setting) { config(s); s.add(yesterday(planFor(2, "gpu-1"))) }, back(`take node gpu-1 back to "all-1g.5gb"`)},
		{"the layout", func(s *setting) {
			layout(s)
			relaying(s.plan).Relayout.Layouts[0]["1g.5gb"] = 3
			s.add(yesterday(planFor(2, "gpu-1")))
		},
			func(s *setting) { layout(s); s.add(yesterday(planFor(2, "gpu-1"))) }, back("take GPU 0 of node gpu-1 back to what it was")},
		{"the layout of a GPU that plan did not re-make",
			func(s *setting) {
				layout(s)
				r := yesterday(planFor(2, "gpu-1"))
				relaying(r).Relayout.GPUs = []int{1}
				s.add(r)
			},
			func(s *setting) {
				layout(s)
				r := yesterday(planFor(2, "gpu-1"))
				relaying(r).Relayout.GPUs = []int{1, 0}
				s.add(r)
			},
			back("take GPU 0 of node gpu-1 back to what it was")},
		{"the layout of a GPU that this plan leaves alone",
			func(s *setting) {
				layout(s) // somebody else brought it back: it is only repeated
				l := relaying(s.plan).Relayout
				l.GPUs, l.Layouts[1] = []int{1}, map[string]int{"2g.10gb": 3}
				s.add(yesterday(planFor(2, "gpu-1")))
			},
			func(s *setting) {
				layout(s)
				l := relaying(s.plan).Relayout
				l.GPUs, l.Layouts[1] = []int{1, 0}, map[string]int{"2g.10gb": 3}
				s.add(yesterday(planFor(2, "gpu-1")))
			}, back("take GPU 0 of node gpu-1 back to what it was")},
		{"a day", func(s *setting) {
			config(s)
			s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Succeeded, noon.Add(-24*time.Hour))))
		},
			func(s *setting) { config(s); s.add(yesterday(planFor(2, "gpu-1"))) }, back(`take node gpu-1 back to "all-1g.5gb"`)},
		{"what came to nothing", func(s *setting) {
			config(s)
			s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Failed, noon.Add(-2*time.Hour))))
		},
			func(s *setting) { config(s); s.add(yesterday(planFor(2, "gpu-1"))) }, back(`take node gpu-1 back to "all-1g.5gb"`)},
		{"another node of that name", func(s *setting) {
			config(s)
			r := yesterday(planFor(2, "gpu-1"))
			relaying(r).Target.UID = "before"
			s.add(r)
		},
			func(s *setting) { config(s); s.add(yesterday(planFor(2, "gpu-1"))) }, back(`take node gpu-1 back to "all-1g.5gb"`)},
		{"RevertMIGConfig may", func(s *setting) {
			config(s)
			s.plan.Spec.Kind = diagnosis.RevertMIGConfig
			s.add(yesterday(planFor(2, "gpu-1")))
		},
			func(s *setting) {
				config(s)
				s.plan.Spec.Kinds = append(s.plan.Spec.Kinds, diagnosis.RevertMIGConfig) // and more than that
				s.add(yesterday(planFor(2, "gpu-1")))
			}, back(`take node gpu-1 back to "all-1g.5gb"`)},
		{"opened after it was closed", func(s *setting) { opening(s); r := closing(); r.Spec.Nodes = []string{"gpu-2"}; s.add(r) },
			func(s *setting) { opening(s); s.add(closing()) }, back("open node gpu-1")},
		{"opened after it was re-made", func(s *setting) { opening(s); s.add(yesterday(planFor(2, "gpu-1"))) },
			func(s *setting) { opening(s); s.add(closing()) }, back("open node gpu-1")},
	})
}
