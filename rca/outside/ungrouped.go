package outside

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// group is for the Job of Volcano that has no PodGroup: its controllers run again, or what keeps them
// from making it is mended.
func group(c *edit.Workload, u *queues.Ungroup) edit.Change {
	const until = "its PodGroup exists"
	o := c.Queue.Held.Owner
	look := fmt.Sprintf("kubectl -n %s get podgroups.scheduling.volcano.sh", o.Namespace)
	describe := fmt.Sprintf("kubectl -n %s describe jobs.batch.volcano.sh %s", o.Namespace, o.Name)
	switch d := u.Controllers; {
	case u.Young:
		return queueChange(diagnosis.Wait, diagnosis.NoRisk, until, "wait until Volcano has made its PodGroup", look)
	case u.Said:
		return queueChange(diagnosis.Manual, diagnosis.NoRisk, until, "mend what Volcano's controllers say of "+c.WorkloadName()+": they try again by themselves", describe, look)
	case d != nil:
		commands := []string{fmt.Sprintf("kubectl -n %s describe deployment/%s", d.Namespace, d.Name)}
		if ptr.Deref(d.Spec.Replicas, 1) == 0 {
			commands = append(commands, fmt.Sprintf("kubectl -n %s scale deployment/%s --replicas=1", d.Namespace, d.Name))
		} else {
			commands = append(commands, fmt.Sprintf("kubectl -n %s get pods -o wide", d.Namespace))
		}
		return queueChange(diagnosis.Manual, diagnosis.NoRisk, until, fmt.Sprintf("bring back Volcano's controllers (%s/%s)", d.Namespace, d.Name), append(commands, look)...)
	}
	return queueChange(diagnosis.Manual, diagnosis.NoRisk, until, "see why Volcano's controllers have made no PodGroup for "+c.WorkloadName(),
		"kubectl get deployments,pods -A | grep -i volcano  # do its controllers run", describe, look)
}
