package outside

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// GiveToHAMi is for the pod that HAMi alone can place and another scheduler has: HAMi's
// webhook, which gives such pods to its scheduler, did not answer when it was made
// (failurePolicy Ignore), or leaves its namespace out.
func GiveToHAMi(c *edit.Workload, id diagnosis.CauseID) []edit.Change {
	if k := c.PrivilegedAsker(); k != "" {
		return []edit.Change{edit.LookAt(id, "run container "+k+" without privileges, or ask for nothing of HAMi's accounting", "HAMi decides by its own accounting, which is not run here; whether it does without privileges, only a person knows",
			c.EditByHand("containers[name="+k+"].securityContext.privileged: false: HAMi shares no card with a privileged container, which sees all of them"))}
	}
	title := "have HAMi's scheduler place it: schedulerName hami-scheduler"
	look := []string{"kubectl get mutatingwebhookconfigurations,deployments -A | grep -i hami  # both have to be there, and answer"}
	if off := keptFromHAMi(c); off != "" {
		title += "; HAMi's webhook leaves it out, by label " + hamisWebhook + "=ignore of its namespace"
		look = []string{off}
	}
	return []edit.Change{edit.LookAt(id, title, "HAMi decides by its own accounting, which is not run here", append(look,
		fmt.Sprintf("kubectl -n %s edit %s  # spec.schedulerName: hami-scheduler, as HAMi's webhook writes it; a pod has to be made again", c.Incident.Workload.Namespace, c.WorkloadName()))...)}
}

// hamisWebhook is the label by which HAMi's webhook leaves pods and namespaces out (its chart, webhook.yaml).
const hamisWebhook = "hami.io/webhook"

// keptFromHAMi is how the label comes off the pod's namespace; empty where it has none.
func keptFromHAMi(c *edit.Workload) string {
	for _, ns := range c.Cluster.State.Namespaces {
		if ns.Name == c.Pod.Namespace && ns.Labels[hamisWebhook] == "ignore" {
			return fmt.Sprintf("kubectl label namespace %s %s-  # HAMi's webhook then has all pods that are made there", ns.Name, hamisWebhook)
		}
	}
	return ""
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
