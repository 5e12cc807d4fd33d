package outside

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// listCards shows which cards nodes have, by the annotation of the scheduler that shares them.
func listCards(c *edit.Workload) []string {
	register, _ := queues.Register(c.Queue)
	if register == "" {
		return nil
	}
	return []string{"kubectl get nodes -o custom-columns='NAME:.metadata.name,CARDS:.metadata.annotations." + strings.ReplaceAll(register, ".", `\.`) + "'"}
}

// askFewerCards is for the container that asks shares of more cards than any node has: nobody who leaves, and no smaller share,
// makes them more.
func askFewerCards(c *edit.Workload, k *queues.Cards, look string) edit.Change {
	ch := askLess(c, fmt.Sprintf("ask for at most %d %s in %s (%s now): each is a share of another card, and no node has more", k.Most, k.Resource, k.Who(), k.Amount()))
	ch.Commands = append([]string{look}, append(listCards(c), ch.Commands...)...)
	return ch
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
