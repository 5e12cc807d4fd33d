package guard

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Foresight judges plans that nobody has recorded yet, many of them in one view of the
// world: what all of them have in common is looked at once.
type Foresight struct {
	limits  Limits
	view    View
	stopped Verdict // what holds every plan back
	pool    *pool
	nodes   map[string]*corev1.Node
}

// Foresee makes a Foresight of a view, which must not change from here on.
func (l Limits) Foresee(v View) *Foresight {
	f := &Foresight{limits: l, view: v, nodes: make(map[string]*corev1.Node, len(v.Nodes))}
	for _, n := range v.Nodes {
		f.nodes[n.Name] = n
	}
	q := &question{limits: l, view: v, plan: &v1alpha1.Remediation{}}
	f.stopped = first(q, forAll())
	f.pool = q.survey()
	return f
}

// foreseeable are the rules about what is known before a plan is recorded. How many nodes
// others work on just now is not: a plan that waits for its turn is none the worse.
func foreseeable() []rule {
	return slices.DeleteFunc(beforehand(), func(r rule) bool {
		return slices.Contains([]string{"ended", "target", "expired", "superseded", "nodes-in-flight", "paused", "breaker", "freeze"}, r.name)
	})
}

// Judge says what would be said of the plan if it were recorded and approved now. Wanted
// are, by incident, the resources that pods wait for.
func (f *Foresight) Judge(plan *v1alpha1.Remediation, wanted map[string][]corev1.ResourceName) Verdict {
	if f.stopped.Decision != "" {
		return f.stopped
	}
	q := newQuestion(f.limits, f.view, plan)
	q.view.Wanted, q.pool, q.view.Nodes = wanted, f.pool, nil
	for name := range q.nodes {
		if n := f.nodes[name]; n != nil {
			q.view.Nodes = append(q.view.Nodes, n)
		}
	}
	if found := first(q, foreseeable()); found.Decision != "" {
		return found
	}
	return Verdict{Decision: Allow}
}
