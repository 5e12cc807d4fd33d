package outside

import (
	"fmt"
	"regexp"
	"strings"

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

// places is how HAMi's device plugin writes on a node how many pods may have a share of a card.
var places = regexp.MustCompile(`"count":\s*([0-9]+)`)

// morePlaces is for cards that as many pods share as may.
func morePlaces(c *edit.Workload, by string) edit.Change {
	var now []string
	for _, n := range c.Cluster.SortedNodes() {
		if m := places.FindStringSubmatch(n.Annotations["hami.io/node-nvidia-register"]); m != nil {
			now = append(now, m[1]+" on "+n.Name)
		}
	}
	title := "let more pods share a card"
	if len(now) > 0 {
		title += " (now " + strings.Join(now, ", ") + ")"
	}
	return edit.LookAt(diagnosis.SchedulerRefused, title+": raise deviceSplitCount of HAMi's device plugin; a smaller share helps nothing", by+" decides by its own rules, which are not run here",
		"kubectl get configmaps -A | grep -i hami  # hami-scheduler-device: nvidia.deviceSplitCount; hami-device-plugin: devicesplitcount of one node",
		"helm upgrade RELEASE hami-charts/hami -n NAMESPACE --reuse-values --set devicePlugin.deviceSplitCount=10  # where helm made it",
		"kubectl get daemonsets -A | grep -i hami  # then rollout restart its device plugin; pods that run stay")
}
