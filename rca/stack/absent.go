package stack

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
)

// absentRuntime: the node's container runtime is to run NVIDIA's for all that names no other, and finds
// no such program, so no pod at all starts there, the node's network neither (aws/amazon-vpc-cni-k8s
// issue 3104). nil where no pod of the node says so.
func (l *pluginLink) absentRuntime() *Finding {
	for _, p := range l.n.Pods {
		look := l.s.kit.Look(p)
		if look.State != parts.Failed || !strings.HasSuffix(homes.Lacks(look.Whole), homes.Runtime) {
			continue
		}
		starts := "no pod"
		if class := p.Spec.RuntimeClassName; class != nil {
			starts += " of RuntimeClass " + *class
		}
		f := l.s.finding(Runtime, Failed, diagnosis.RuntimeNotConfigured, "has a container runtime that starts "+starts+": it is to run nvidia-container-runtime, which the machine does not have: "+look.Words, podRef(p), look.Words, look.Claims...)
		f.Certainty = diagnosis.Likely // its words alone
		m := l.s.configure(l.n)
		m.Title, m.Minutes = "give "+l.n.Name+" a machine image that has NVIDIA's container toolkit", 15
		if m.Steps, m.Commands = homes.OtherImage(l.n); !parts.MachineTold(l.n) { // nobody makes it from an image
			m.Title = "install NVIDIA's container toolkit on " + l.n.Name + " again, and start its container runtime again"
		}
		f.Mends = []Mend{m}
		return f
	}
	return nil
}
