package stack

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// nvidiaRuntime is the program that a container runtime is configured to run for NVIDIA's.
const nvidiaRuntime = `exec: "nvidia-container-runtime": executable file not found`

// absentRuntime: the node's container runtime is to run NVIDIA's for all that names no other, and finds
// no such program, so no pod at all starts there, the node's network neither (aws/amazon-vpc-cni-k8s
// issue 3104). nil where no pod of the node says so.
func (s *Stack) absentRuntime(n *view.Node) *Finding {
	for _, p := range n.Pods {
		l := s.kit.Look(p)
		if l.State != parts.Failed || !strings.Contains(l.Words, nvidiaRuntime) {
			continue
		}
		f := s.finding(Runtime, Failed, diagnosis.RuntimeNotConfigured, "has a container runtime that starts no pod: it is to run nvidia-container-runtime, which the machine does not have: "+l.Words, podRef(p), l.Words, l.Claims...)
		f.Certainty = diagnosis.Likely // its words alone
		f.Mends = []Mend{s.otherImage(n)}
		return f
	}
	return nil
}

// otherImage gives a machine an image whose parts fit together.
func (s *Stack) otherImage(n *view.Node) Mend {
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "give " + n.Name + " a machine image that has NVIDIA's container toolkit", Until: "the runtime of " + n.Name + " knows NVIDIA's, and its device plugin has announced its GPUs", Risk: diagnosis.MediumRisk, Minutes: 15,
		Steps: []string{"see which image the machine has, and what its start-up script writes into the container runtime's configuration: the image lacks what that names", "take an image for GPUs, and make the machine again; or install the toolkit on the machine"}}
	if pool := n.Labels["karpenter.sh/nodepool"]; pool != "" {
		m.Commands = []string{"kubectl get nodeclaims -l karpenter.sh/nodepool=" + pool + " -o custom-columns=NAME:.metadata.name,NODE:.status.nodeName,IMAGE:.status.imageID,CLASS:.spec.nodeClassRef.name",
			"kubectl get nodepool " + pool + " -o jsonpath='{.spec.template.spec.nodeClassRef}'  # its images: spec.amiFamily and spec.amiSelectorTerms of an EC2NodeClass",
			"# once the class names another image: kubectl delete nodeclaim NAME  # Karpenter makes another while pods wait"}
		return m
	}
	m.Commands = append([]string{"kubectl get node " + n.Name + " -o jsonpath='{.status.nodeInfo}'"}, homes.Configure(n)...)
	return m
}
