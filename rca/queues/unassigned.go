package queues

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
)

// TopologyGate is Kueue's gate for pods whose places it chooses: it takes that away once it has admitted them (KEP 2724).
const TopologyGate = "kueue.x-k8s.io/topology"

// Placing is what Kueue has placed of a Workload's pods, of which it keeps one by its gate.
type Placing struct {
	Workload *unstructured.Unstructured
	// Pods are to be, and Places there are; 0 where no figure alone says that. Slice is how many are placed together; 0: each alone.
	Pods, Places, Slice int64
	Short               bool // pods are left without a place
}

// Unplaced is for a pod that is kept by Kueue's gate for its place alone, though its Workload is admitted; nil for others.
func Unplaced(c *Case) *Placing {
	w := c.Queued()
	if w == nil || !slices.Equal(c.Pod.Spec.SchedulingGates, []corev1.PodSchedulingGate{{Name: TopologyGate}}) || !scaling.ConditionOf(w, "Admitted").Met() {
		return nil
	}
	p, sets, assigned := &Placing{Workload: w}, nested(w, "spec", "podSets"), nested(w, "status", "admission", "podSetAssignments")
	if len(sets)*len(assigned) != 1 {
		return p
	}
	p.Pods, _ = sets[0]["count"].(int64)
	p.Slice, _, _ = unstructured.NestedInt64(sets[0], "topologyRequest", "podSetSliceSize") //nolint:errcheck // what is no number is none
	if parts := nested(&unstructured.Unstructured{Object: assigned[0]}, "topologyAssignment", "slices"); len(parts) == 1 {
		if each, _, _ := unstructured.NestedInt64(parts[0], "podCounts", "universal"); each == 1 { //nolint:errcheck // as above
			p.Places, _ = parts[0]["domainCount"].(int64)
			p.Short = p.Places > 0 && p.Places < p.Pods
		}
	}
	return p
}

// Says completes that a pod is held by the gate, and is what shows it.
func (p *Placing) Says() (string, []diagnosis.Evidence) {
	if !p.Short {
		return ": Kueue is to take it away, and has admitted " + refOf("Workload", p.Workload), []diagnosis.Evidence{conditionFact(p.Workload, "Admitted")}
	}
	is := func(path string, n int64) diagnosis.Claim {
		return diagnosis.That(path, "", diagnosis.Is, fmt.Sprint(n))
	}
	says, fact := fmt.Sprintf(": Kueue has given places to %d of its %d pods", p.Places, p.Pods), fmt.Sprintf("topologyAssignment: %d of %d pods", p.Places, p.Pods)
	claims := []diagnosis.Claim{is("spec.podSets[0].count", p.Pods), is("status.admission.podSetAssignments[0].topologyAssignment.slices[0].domainCount", p.Places), is("status.admission.podSetAssignments[0].topologyAssignment.slices[0].podCounts.universal", 1)}
	if p.Slice > 1 {
		says, fact = says+fmt.Sprintf(", for it places %d at a time", p.Slice), fact+fmt.Sprintf(", in slices of %d", p.Slice)
		claims = append(claims, is("spec.podSets[0].topologyRequest.podSetSliceSize", p.Slice))
	}
	return says, []diagnosis.Evidence{diagnosis.Fact(refOf("Workload", p.Workload), fact, claims...), conditionFact(p.Workload, "Admitted")}
}
