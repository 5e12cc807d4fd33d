package stack

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// operatorDown: the GPU Operator is installed, makes none of its DaemonSets, and is not there to make
// them: its own pod does not run, or it has no ClusterPolicy to go by. Nil where it runs, where it
// is not installed, and where what it goes by was not read.
func (s *Stack) operatorDown(n *view.Node) *Finding {
	pod := s.operator
	if pod == nil {
		return nil
	}
	until := "the GPU Operator has installed what announces the GPUs of " + n.Name
	if l := s.kit.Look(pod); l.State != "" {
		f := s.finding(Installed, Failed, diagnosis.GPUStackMissing, "has GPUs, and the GPU Operator, which installs what announces them, does not run: "+l.Text(), podRef(pod), l.Text(), append(l.Claims, noPlugin()...)...)
		m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "have the GPU Operator's own pod run: " + pod.Namespace + "/" + pod.Name, Until: until, Risk: diagnosis.LowRisk, Minutes: 15,
			Commands: []string{fmt.Sprintf("kubectl -n %s describe pod %s", pod.Namespace, pod.Name)}}
		switch p := (&part{s: s, n: s.w.Nodes[pod.Spec.NodeName], pod: pod, Look: l}); {
		case pod.Spec.NodeName == "":
			m.Steps = []string{"see what keeps it from every node: where its own spec asks for less than its pod, the namespace or a webhook has added it"}
			m.Commands = append(m.Commands, fmt.Sprintf("kubectl unpend why pod/%s -n %s", pod.Name, pod.Namespace), "kubectl get namespace "+pod.Namespace+" -o yaml  # openshift.io/node-selector is for every pod of it")
		case strings.Contains(l.Whole, "Image") && p.n != nil: // it has never run there: there is no log
			p.pull(&m, "GPU Operator")
		default:
			m.Commands = append(m.Commands, fmt.Sprintf("kubectl -n %s logs %s%s%s --tail=50", pod.Namespace, pod.Name, l.In(), l.Before()))
		}
		f.Mends = []Mend{m}
		return f
	}
	if s.policy != "" || s.unread("ClusterPolicy") != "" || len(s.w.State.GPUClusters) > 0 {
		return nil
	}
	f := s.finding(Installed, Missing, diagnosis.GPUStackMissing, "has GPUs, and the GPU Operator has no ClusterPolicy that tells it what to install", podRef(pod), "it runs, and there is no ClusterPolicy",
		diagnosis.That("", "", diagnosis.Absent, "").Of("ClusterPolicy/*"))
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "make a ClusterPolicy, by which the GPU Operator installs what announces the GPUs of " + n.Name, Until: until, Risk: diagnosis.LowRisk, Minutes: 15,
		Commands: []string{"kubectl -n " + pod.Namespace + " get csv -o jsonpath='{.items[0].metadata.annotations.alm-examples}' | jq '.[0]' > clusterpolicy.json  # on OpenShift; elsewhere its chart makes one", "kubectl apply -f clusterpolicy.json", "kubectl get clusterpolicy -w"}}}
	return f
}

// operated says whether the GPU Operator installs what a node has: it has a ClusterPolicy, or it is seen itself, or by its labels of the
// node, where that cannot be read.
func operated(s *Stack, n *view.Node) bool { return s.policy != "" || policyUnread(s, n) != "" }

// policyUnread is why the ClusterPolicy of a GPU Operator that is there was not read; empty where it was, or none is there.
func policyUnread(s *Stack, n *view.Node) string {
	why := s.unread("ClusterPolicy")
	if why == "" || s.policy != "" || len(s.w.State.GPUClusters) > 0 || s.operator == nil && !managed(n) && parts.OperatorDeployed(s.w) == nil {
		return ""
	}
	return why
}

// unsure: what the GPU Operator has not brought it may be told not to bring, where that was not read.
func unsure(s *Stack, n *view.Node, f *Finding) *Finding {
	if why := policyUnread(s, n); why != "" && f.State != Starting {
		if f.Certainty == diagnosis.Proven {
			f.Certainty = diagnosis.Likely
		}
		f.Says += "; what the GPU Operator is told to install was not seen"
		f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "ClusterPolicy: "+why, diagnosis.That("", "", diagnosis.Absent, "").Of("ClusterPolicy/*")))
	}
	return f
}
