package stack

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
)

// forAnotherKernel completes a finding of a driver that fails with what node feature discovery says
// of a kernel that the node does not run, as after an upgrade of the node: the GPU Operator goes by
// its labels.
func (l *driverLink) forAnotherKernel(f *Finding) {
	n := l.n
	said, runs := n.Labels[parts.KernelLabel], n.Status.NodeInfo.KernelVersion
	if said == "" || runs == "" || said == parts.KernelLabelOf(runs) {
		return
	}
	f.Says += fmt.Sprintf("; node feature discovery has labelled it for kernel %s, and it runs %s", said, runs)
	f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "label "+parts.KernelLabel+"="+said+", kernelVersion "+runs, append(n.Labelled(parts.KernelLabel), diagnosis.That("status.nodeInfo.kernelVersion", "", diagnosis.Is, runs))...))
	f.Mends = append([]Mend{l.lookAgain(f.Mends[0].Until)}, f.Mends...)
}

// lookAgain has node feature discovery label the node for what it runs now.
func (l *driverLink) lookAgain(until string) Mend {
	n := l.n
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "have node feature discovery look at " + n.Name + " again, so that its driver is made for the kernel that it runs", Until: until, Risk: diagnosis.LowRisk, Minutes: 10}
	if pod := l.s.kit.Pod(n, parts.Discovery); pod != nil {
		m.Commands = []string{fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again, and it looks when it starts", pod.Namespace, pod.Name), fmt.Sprintf("kubectl -n %s get pods", pod.Namespace)}
	} else {
		m.Commands = []string{"kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + " | grep -i nfd  # its worker has to run there"}
	}
	m.Commands = append(m.Commands, "kubectl get node "+n.Name+" -L "+parts.KernelLabel, "kubectl get pods -A -o wide -w --field-selector spec.nodeName="+n.Name+"  # the driver's")
	return m
}
