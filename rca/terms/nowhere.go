package terms

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Nowhere is a volume of the pod that is local to one node, where no node has the host name that it wants. named is the
// node that has it as its name and not as that label, which some clouds and installers set otherwise; nil: no node is
// called so either.
func (c *Volumes) Nowhere() (p Place, named *view.Node, ok bool) {
	if c.Cluster.State.Unread["Node"] != "" {
		return Place{}, nil, false
	}
	for _, p := range c.places() {
		if p.Key != corev1.LabelHostname || slices.ContainsFunc(c.Cluster.Column(p.Key).Distinct, func(v string) bool { return slices.Contains(p.values, v) }) {
			continue
		}
		for _, name := range p.values {
			if n := c.Cluster.Nodes[name]; n != nil {
				return p, n, true
			}
		}
		return p, nil, true
	}
	return Place{}, nil, false
}

func nowhereSays(p Place, named *view.Node) (string, []diagnosis.Evidence) {
	volume := p.evidence()
	if named == nil {
		volume.Claims = append(volume.Claims, diagnosis.That(diagnosis.Labels, p.Key, diagnosis.IsNot, p.values[0]).Of("Node/*"))
		return fmt.Sprintf("its volume is local to a node that is not there: PersistentVolumeClaim %s wants %s=%s", p.Claim, p.Key, p.Where()), []diagnosis.Evidence{volume}
	}
	has := named.Labels[p.Key]
	return fmt.Sprintf("its volume is for no node at all: PersistentVolumeClaim %s wants %s=%s, and the node of that name has %s there", p.Claim, p.Key, p.Where(), orNone(has)),
		[]diagnosis.Evidence{volume, diagnosis.Fact(named.Ref(), "its label "+p.Key+" is "+orNone(has), named.Labelled(p.Key)...)}
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}
