package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// opposite finds a plan of late that this one would undo. What that plan replaced is
// in its own spec: the facts that it relied on. Taking back a layout that MIG manager
// fails on is what RevertMIGConfig is for: it may.
func opposite(q *question) Verdict {
	if q.plan.Spec.Kind == diagnosis.RevertMIGConfig {
		return Verdict{}
	}
	for r := range q.others() {
		if r.Status.Phase != v1alpha1.Succeeded || !within(q.view.Now, endedAt(r), q.limits.OppositeWithin) || q.shared(r) == "" {
			continue
		}
		for i := range q.plan.Spec.Actions {
			if what := undoes(&q.plan.Spec.Actions[i], r); what != "" {
				return refuse(v1alpha1.Refused, "it would %s, which plan %s changed at %s; within %s nothing is changed to and fro: free or add GPUs instead, or lower oppositeWithin in ConfigMap %s",
					what, Called(r), instant(endedAt(r)), short(q.limits.OppositeWithin), ConfigMap)
			}
		}
	}
	return Verdict{}
}

// undoes says how an action takes an earlier plan back; empty when it does not. A
// GPU found broken after a node was opened is news: only opening after closing is to
// and fro.
func undoes(b *diagnosis.Action, earlier *v1alpha1.Remediation) string {
	if b.Verb == diagnosis.VerbUncordon && slices.Contains(earlier.Spec.Kinds, diagnosis.QuarantineGPU) && slices.Contains(earlier.Spec.Nodes, b.Target.Name) {
		return "open node " + b.Target.Name
	}
	if b.Verb != diagnosis.VerbRelayout || b.Relayout == nil {
		return ""
	}
	for _, a := range earlier.Spec.Actions {
		if a.Verb != diagnosis.VerbRelayout || a.Relayout == nil || a.Target.Name != b.Target.Name || a.Target.UID != b.Target.UID {
			continue
		}
		if was, _, _ := strings.Cut(a.Relies["mig"], " "); was != "" && was == b.Relayout.Config {
			return fmt.Sprintf("take node %s back to %q", b.Target.Name, was)
		}
		for _, gpu := range a.Relayout.GPUs {
			was, known := layout(a.Relies[fmt.Sprintf("gpu%d", gpu)])
			if known && slices.Contains(b.Relayout.GPUs, gpu) && maps.Equal(was, without0(b.Relayout.Layouts[gpu])) {
				return fmt.Sprintf("take GPU %d of node %s back to what it was", gpu, b.Target.Name)
			}
		}
	}
	return ""
}

// layout reads a GPU's fact, "1g.5gb@6 2g.10gb@0" or "empty", as profiles and counts.
// It is not known when the GPU was not partitioned, or the plan does not say.
func layout(fact string) (map[string]int, bool) {
	out := map[string]int{}
	switch fact {
	case "", "whole":
		return nil, false
	case "empty":
		return out, true
	}
	for part := range strings.FieldsSeq(fact) {
		profile, _, _ := strings.Cut(part, "@")
		out[profile]++
	}
	return out, true
}

func without0(layout map[string]int) map[string]int {
	out := maps.Clone(layout)
	maps.DeleteFunc(out, func(_ string, n int) bool { return n == 0 })
	return out
}
