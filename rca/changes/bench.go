package changes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
)

// Bench is where changes for one case are worked out: the case, and what is worked out
// once for all its nodes.
type Bench struct {
	*causes.Case
	// Past are the outcomes of past fixes, newest first.
	Past []knowledge.Outcome
	// requests are the changes of the workload worked out so far, by title; selections
	// those of its selectors, by what does not match.
	requests   map[string]Change
	selections map[*causes.Missed][]Change
	// spreads are what each of the pod's spread constraints counts.
	spreads map[int]*spreadCount
	// host is what the pod requests besides GPUs, once asked for.
	host corev1.ResourceList
	// siblings are the workload's pods, once asked for.
	siblings *siblings
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
func New(c *causes.Case, past []knowledge.Outcome) *Bench {
	return &Bench{Case: c, Past: past, requests: map[string]Change{}, selections: map[*causes.Missed][]Change{}}
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
	out := New(&many, c.Past)
	out.siblings = c.siblings
	return out
}
