package outside

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// giveToHAMi is for the pod that HAMi alone can place and the default scheduler has: HAMi's
// webhook, which gives such pods to its scheduler, did not answer when it was made
// (failurePolicy Ignore), or leaves its namespace out.
func giveToHAMi(c *edit.Workload) []edit.Change {
	if k := c.PrivilegedAsker(); k != "" {
		return []edit.Change{edit.LookAt(diagnosis.SchedulerMissing, "run container "+k+" without privileges, or ask for nothing of HAMi's accounting", "HAMi decides by its own accounting, which is not run here; whether it does without privileges, only a person knows",
			c.EditByHand("containers[name="+k+"].securityContext.privileged: false: HAMi shares no card with a privileged container, which sees all of them"))}
	}
	return []edit.Change{edit.LookAt(diagnosis.SchedulerMissing, "have HAMi's scheduler place it: schedulerName hami-scheduler", "HAMi decides by its own accounting, which is not run here",
		"kubectl get mutatingwebhookconfigurations,deployments -A | grep -i hami  # both have to be there, and answer",
		fmt.Sprintf("kubectl -n %s edit %s  # spec.schedulerName: hami-scheduler, as HAMi's webhook writes it; a pod has to be made again", c.Incident.Workload.Namespace, c.WorkloadName()))}
}
