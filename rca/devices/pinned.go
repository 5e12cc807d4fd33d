package devices

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Pinned is a claim of the pod that is allocated to devices of one node: until nobody has it reserved any more the pod goes
// there or nowhere, whatever other nodes have (the scheduler's plugin DynamicResources, Filter).
type Pinned struct {
	Claim *resourcev1.ResourceClaim
	Node  string
}

// Pinned finds that of the pod; nil where its claims are not allocated, or several nodes reach the devices.
func (v *Claims) Pinned() *Pinned {
	if v == nil {
		return nil
	}
	for _, claim := range v.Own {
		if claim.Status.Allocation == nil || claim.Status.Allocation.NodeSelector == nil {
			continue
		}
		selector, err := nodeaffinity.NewNodeSelector(claim.Status.Allocation.NodeSelector)
		if err != nil {
			continue
		}
		on := ""
		for _, n := range v.asker.Cluster.SortedNodes() {
			if !selector.Match(n.Node) {
				continue
			}
			if on != "" {
				on = ""
				break
			}
			on = n.Name
		}
		if on != "" {
			return &Pinned{claim, on}
		}
	}
	return nil
}

// Text says it of the other nodes.
func (p *Pinned) Text() string {
	return fmt.Sprintf("ResourceClaim %s is allocated to devices of %s, and so for no other node", p.Claim.Name, p.Node)
}

// Evidence is what shows it of another node.
func (p *Pinned) Evidence(other string) []diagnosis.Evidence {
	return []diagnosis.Evidence{diagnosis.Fact("ResourceClaim/"+p.Claim.Namespace+"/"+p.Claim.Name, "is allocated to devices of "+p.Node,
		diagnosis.That("status.allocation", "", diagnosis.Exists, ""), diagnosis.That("status.allocation.nodeSelector", "", diagnosis.Contains, p.Node)),
		diagnosis.Fact("Node/"+other, "is another node than "+p.Node, diagnosis.That("metadata.name", "", diagnosis.IsNot, p.Node))}
}
