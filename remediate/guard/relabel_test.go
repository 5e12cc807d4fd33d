package guard

import (
	"maps"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

// A layout that re-makes no GPU has to be what all of them have, and evicts nobody: an
// empty set of GPUs is never "all".
func TestRelabel(t *testing.T) {
	has := map[int]map[string]int{0: {"1g.5gb": 2}}
	for name, tc := range map[string]struct {
		edit func(*diagnosis.Relayout, map[string]string)
		ok   bool
	}{
		"what they have":        {func(*diagnosis.Relayout, map[string]string) {}, true},
		"another count":         {func(r *diagnosis.Relayout, _ map[string]string) { r.Layouts = map[int]map[string]int{0: {"1g.5gb": 3}} }, false},
		"a GPU not known":       {func(_ *diagnosis.Relayout, relies map[string]string) { delete(relies, "gpu0") }, false},
		"a GPU that is whole":   {func(_ *diagnosis.Relayout, relies map[string]string) { relies["gpu0"] = "whole" }, false},
		"GPUs without instance": {func(r *diagnosis.Relayout, relies map[string]string) { r.Layouts[0], relies["gpu0"] = nil, "empty" }, false},
		"no layout":             {func(r *diagnosis.Relayout, _ map[string]string) { r.Layouts = nil }, false},
		"a victim": {func(r *diagnosis.Relayout, _ map[string]string) {
			r.Victims = []diagnosis.Target{{Kind: "Pod", Namespace: "ml", Name: "a", UID: "b"}}
		}, false},
		"another first":            {func(r *diagnosis.Relayout, _ map[string]string) { r.First = "all-2g.10gb" }, false},
		"a first that is no label": {func(r *diagnosis.Relayout, _ map[string]string) { r.First, r.GPUs = "a b", []int{0} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet()
			s.plan.Spec.Kind, s.plan.Spec.Kinds = diagnosis.RevertMIGConfig, []diagnosis.FixKind{diagnosis.RevertMIGConfig}
			a := &s.plan.Spec.Actions[0]
			a.Relayout = &diagnosis.Relayout{Config: "all-1g.5gb", GPUs: []int{}, Layouts: maps.Clone(has)}
			tc.edit(a.Relayout, a.Relies)
			got := s.judge()
			if ok := got.Decision == Allow; ok != tc.ok || !ok && got.Rule != "target" {
				t.Errorf("%+v", got)
			}
		})
	}
}
