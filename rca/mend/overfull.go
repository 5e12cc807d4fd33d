package mend

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// writeElsewhere is for a workload whose own pods fill the disk of a node: it takes a volume for what it writes, or asks for as
// much of the disk as it used, where the node has that; the scheduler then knows, and nobody is evicted for less.
func writeElsewhere(c *edit.Workload, n *view.Node, wait edit.Change, o *terms.Overfull) edit.Change {
	has := n.Status.Allocatable[corev1.ResourceEphemeralStorage]
	fits := has.Cmp(o.Used) > 0
	title := fmt.Sprintf("have %s write to a volume", c.WorkloadName())
	if fits {
		title += fmt.Sprintf(", or ask for %s of %s", o.Used.String(), corev1.ResourceEphemeralStorage)
	} else {
		title += fmt.Sprintf(" (%s allows pods %dMi of its disk in all)", n.Name, has.Value()>>20)
	}
	ch := wait
	ch.Kind, ch.Adds, ch.Minutes, ch.Risk = diagnosis.ChangeRequest, true, 5, diagnosis.LowRisk
	ch.Title = fmt.Sprintf("%s: container %s was using %s, and the next one will", title, o.Container, o.Used.String())
	ch.Steps = []string{"see where it writes: what is not on a volume counts, also its logs and emptyDir volumes", "mount a volume there, or ask for what it takes", "wait until " + n.Name + " has disk space again: its kubelet frees what the evicted pods have left"}
	p := o.Pods[0]
	ch.Commands = []string{fmt.Sprintf("kubectl -n %s get pod %s -o jsonpath='{.status.message}'", p.Namespace, p.Name),
		c.EditByHand("a volume mounted where container " + o.Container + " writes (model caches: HF_HOME, /root/.cache)")}
	if fits {
		ch.Commands = append(ch.Commands, c.EditByHand("resources.requests of container "+o.Container+": "+string(corev1.ResourceEphemeralStorage)+": "+o.Used.String()))
	}
	ch.Commands = append(ch.Commands, wait.Commands...)
	return ch
}
