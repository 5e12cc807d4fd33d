package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
)

// lacks says what of wanted is not in got: maps hold more, all else is the same. Quantities are
// written in different ways, and what is empty is not kept.
func lacks(got, wanted any, at string) string {
	switch w := wanted.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if at == "" && key == "apiVersion" || at == ".metadata" && slices.Contains(serverSets, key) {
				continue
			}
			if what := lacks(g[key], w[key], at+"."+key); what != "" {
				return what
			}
		}
		return ""
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			return fmt.Sprintf("%s = %v, but with %v", at, wanted, got)
		}
		for i := range w {
			if what := lacks(g[i], w[i], fmt.Sprintf("%s[%d]", at, i)); what != "" {
				return what
			}
		}
		return ""
	}
	if same(got, wanted) {
		return ""
	}
	return fmt.Sprintf("%s = %v, but with %v", at, wanted, got)
}

func same(a, b any) bool {
	x, y := strings.TrimSpace(fmt.Sprint(a)), strings.TrimSpace(fmt.Sprint(b))
	if x == y || a == nil && (b == "" || b == false || y == "0" || b == nil) {
		return true
	}
	p, err := resource.ParseQuantity(x)
	q, err2 := resource.ParseQuantity(y)
	return err == nil && err2 == nil && p.Cmp(q) == 0
}

// said is what two findings on the same objects have to have alike, in lines.
func said(all []diagnosis.Diagnosis) string {
	var out strings.Builder
	for _, d := range all {
		fmt.Fprintf(&out, "%s %s %s/%s waits %d %q: %s\n", d.Incident, d.Workload.Kind, d.Workload.Namespace, d.Workload.Name, d.Pods.Waiting, d.Pods.Names, d.Headline)
		for _, c := range d.Causes {
			fmt.Fprintf(&out, "  %s %s %v: %s\n", c.ID, c.Certainty, c.Nodes, c.Says)
		}
		for _, n := range d.Nodes {
			for _, b := range n.Blockers {
				fmt.Fprintf(&out, "  %s: %s %s: %s\n", n.Name, b.Cause, b.Plugin, b.Reason)
			}
		}
		for _, f := range d.Fixes {
			fmt.Fprintf(&out, "  #%d %v %s, %s on %q, risk %s, effect %s, automatic %v\n", f.ID, f.Kinds, f.Title, f.Proof.Verdict, f.Proof.Node, f.Risk, effectText(f), f.Automatic)
		}
	}
	return out.String()
}
