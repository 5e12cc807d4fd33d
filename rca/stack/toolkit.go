package stack

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/view"
)

// untoldHome completes a finding of the GPU Operator's toolkit with that it is not told where the
// node's containerd is: it dials, and writes, in places that the distribution does not use.
func (s *Stack) untoldHome(n *view.Node, f *Finding) {
	h := homes.Of(n)
	if h == nil || s.policy == "" {
		return
	}
	lacks, set := h.Untold(s.w.State.ClusterPolicies, s.policy)
	if len(lacks) == 0 { // what it is told stands in no dump: the values of variables are left out
		f.Mends[0].Commands = append(f.Mends[0].Commands, fmt.Sprintf("kubectl get clusterpolicy %s -o jsonpath='{.spec.toolkit.env}'  # %s's containerd listens on %s", s.policy, h.Name, h.Socket))
		return
	}
	name, _, _ := strings.Cut(lacks[0], "=")
	f.Says += fmt.Sprintf("; %s keeps its containerd in a place of its own, and the GPU Operator's toolkit is not told: %s", h.Name, strings.Join(lacks, " "))
	f.Evidence = append(f.Evidence, diagnosis.Fact("ClusterPolicy/"+s.policy, "spec.toolkit.env has no "+name, diagnosis.That("spec.toolkit.env", "", diagnosis.ContainsNot, name)))
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: fmt.Sprintf("tell the container toolkit where the containerd of %s is: %s", n.Name, strings.Join(lacks, " ")), Until: f.Mends[0].Until, Risk: diagnosis.LowRisk, Minutes: 5,
		Commands: []string{set, "kubectl get pods -A -o wide -w --field-selector spec.nodeName=" + n.Name}}
	if h.Config == "" {
		m.Commands = append(m.Commands, h.Machine...)
	}
	f.Mends = append([]Mend{m}, f.Mends...)
}
