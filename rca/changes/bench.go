package changes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/evict"
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
	// tenants are who could leave for this pod, once asked for.
	tenants *evict.Tenants
}

// New takes a case that was judged, and past outcomes, newest first.
func New(c *causes.Case, past []knowledge.Outcome) *Bench {
	return &Bench{Case: c, Past: past, requests: map[string]Change{}, selections: map[*causes.Missed][]Change{}}
}
