package edit

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// GiveToHAMi is for the pod that HAMi alone can place and another scheduler has: HAMi's
// webhook, which gives such pods to its scheduler, did not answer when it was made
// (failurePolicy Ignore), or leaves its namespace out.
func (c *Workload) GiveToHAMi(id diagnosis.CauseID) []Change {
	if k := c.PrivilegedAsker(); k != "" {
		return []Change{LookAt(id, "run container "+k+" without privileges, or ask for nothing of HAMi's accounting", "HAMi decides by its own accounting, which is not run here; whether it does without privileges, only a person knows",
			c.EditByHand("containers[name="+k+"].securityContext.privileged: false: HAMi shares no card with a privileged container, which sees all of them"))}
	}
	title := "have HAMi's scheduler place it: schedulerName hami-scheduler"
	look := []string{"kubectl get mutatingwebhookconfigurations,deployments -A | grep -i hami  # both have to be there, and answer"}
	if off := c.keptFromHAMi(); off != "" {
		title += "; HAMi's webhook leaves it out, by label " + hamisWebhook + "=ignore of its namespace"
		look = []string{off}
	}
	ch := LookAt(id, title, "HAMi decides by its own accounting, which is not run here", append(look,
		fmt.Sprintf("kubectl -n %s edit %s  # spec.schedulerName: hami-scheduler, as HAMi's webhook writes it; a pod has to be made again", c.Incident.Workload.Namespace, c.WorkloadName()))...)
	if ch.Drained = c.Cluster.Running(c.Incident.Workload); len(ch.Drained) > 0 { // a changed template rolls them
		ch.Risk = diagnosis.MediumRisk
	}
	return []Change{ch}
}

// hamisWebhook is the label by which HAMi's webhook leaves pods and namespaces out (its chart, webhook.yaml).
const hamisWebhook = "hami.io/webhook"

// keptFromHAMi is how the label comes off the pod's namespace; empty where it has none.
func (c *Workload) keptFromHAMi() string {
	for _, ns := range c.Cluster.State.Namespaces {
		if ns.Name == c.Pod.Namespace && ns.Labels[hamisWebhook] == "ignore" {
			return fmt.Sprintf("kubectl label namespace %s %s-  # HAMi's webhook then has all pods that are made there", ns.Name, hamisWebhook)
		}
	}
	return ""
}

// mayShare is how HAMi's device plugin writes on a node how many pods may have a share of a card.
var mayShare = regexp.MustCompile(`"count":\s*([0-9]+)`)

// MorePlaces is for cards of HAMi's that as many pods share as may; by: who decides that.
func (c *Workload) MorePlaces(cause diagnosis.CauseID, by string) Change {
	var now []string
	for _, n := range c.Cluster.SortedNodes() {
		if m := mayShare.FindStringSubmatch(n.Annotations["hami.io/node-nvidia-register"]); m != nil {
			now = append(now, m[1]+" on "+n.Name)
		}
	}
	title := "let more pods share a card"
	if len(now) > 0 {
		title += " (now " + strings.Join(now, ", ") + ")"
	}
	return LookAt(cause, title+": raise deviceSplitCount of HAMi's device plugin; a smaller share helps nothing", by+" decides by its own rules, which are not run here",
		"kubectl get configmaps -A | grep -i hami  # hami-scheduler-device: nvidia.deviceSplitCount; hami-device-plugin: devicesplitcount of one node",
		upgradeHAMi(c.Cluster)+"--set devicePlugin.deviceSplitCount=10  # where helm made it",
		"kubectl get daemonsets -A | grep -i hami  # then rollout restart its device plugin; pods that run stay")
}

// upgradeHAMi begins the command that changes HAMi's release.
func upgradeHAMi(w *view.Cluster) string {
	for _, d := range parts.Of(w).Sets(parts.Plugin) {
		if strings.HasPrefix(d.Name, view.HAMiPluginName) {
			return d.Reuse("hami-charts/hami")
		}
	}
	return "helm upgrade RELEASE hami-charts/hami -n NAMESPACE --reuse-values "
}
