package retry

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/kubelet"
)

// askOfOneNUMA is for a kubelet whose Memory Manager gives each guaranteed pod the memory of as few NUMA nodes as can have it,
// and shares such a group of them with no pod of another (Kubernetes, memory manager, policy Static).
func askOfOneNUMA(c *edit.Workload, t *kubelet.Turned) edit.Change {
	ch := edit.Change{Kind: diagnosis.ChangeRequest, Manual: true, Minutes: 2, Risk: diagnosis.MediumRisk, Title: fmt.Sprintf("have %s ask for no more memory than a NUMA node of %s has left, or set memoryManagerPolicy None there", c.WorkloadName(), t.On),
		Untestable: "what each NUMA node has left is in no object: the kubelet keeps it in a file of the machine", Drained: c.Cluster.Running(c.Incident.Workload), StopsUnknown: true,
		Steps: []string{"see what each NUMA node of " + t.On + " has left", "ask for less memory than that, in requests and limits alike", "or, where the pods need no memory of one NUMA node: memoryManagerPolicy None on the machine"}}
	debug := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host ", t.On)
	ch.Commands = []string{debug + "cat /var/lib/kubelet/memory_manager_state  # of each NUMA node: allocatable, reserved and free, in bytes",
		debug + "lscpu  # which there are", c.EditByHand("less memory, in requests and limits alike"),
		"# or, on the machine: memoryManagerPolicy: None in its kubelet's configuration; drain it, stop the kubelet, remove /var/lib/kubelet/memory_manager_state, and start the kubelet"}
	return ch
}
