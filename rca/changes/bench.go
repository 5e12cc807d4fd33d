package changes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// Bench is where changes for one case are worked out: the case, and what is worked out
// once for all its nodes.
type Bench struct {
	*edit.Workload
	// Past are the outcomes of past fixes, newest first.
	Past []knowledge.Outcome
	// selections are the changes of the workload's selectors, by what does not match.
	selections map[*terms.Missed][]edit.Change
	// host is what the pod requests besides GPUs, once asked for.
	host corev1.ResourceList
	// barred are volumes where no node takes the pod by its own rules, once asked for.
	barred map[string]bool
	// planner works out other layouts for this pod, once asked for.
	planner *relayout.Planner
}

func (c *Bench) layouts() *relayout.Planner {
	if c.planner == nil {
		c.planner = relayout.New(c.Asker, c.Asks)
	}
	return c.planner
}

// New takes a case that was judged, and past outcomes, newest first.
func New(c *causes.Case, past []knowledge.Outcome) *Bench { return on(edit.New(c), past) }

func on(w *edit.Workload, past []knowledge.Outcome) *Bench {
	return &Bench{Workload: w, Past: past, selections: map[*terms.Missed][]edit.Change{}, barred: map[string]bool{}}
}

// For is the bench for n such pods together on one node: as if one pod asked for n times as
// much.
func (c *Bench) For(n int) *Bench {
	many := *c.Case
	many.Asks, many.Wants = make([]view.Ask, len(c.Asks)), make(corev1.ResourceList, len(c.Wants))
	for i, a := range c.Asks {
		a.Count *= int64(n)
		many.Asks[i] = a
	}
	for name, q := range c.Wants {
		q = q.DeepCopy()
		q.Mul(int64(n))
		many.Wants[name] = q
	}
	return on(c.As(&many), c.Past)
}
