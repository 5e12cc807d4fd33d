package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// keepToPolicy is for the webhook that works and denies the pods: what it demands it says itself.
func keepToPolicy(c *edit.Workload, ch *edit.Change, describe, webhooks string) {
	ch.Title = "see which policy denies it: its webhook is named in the refusal"
	ch.Commands = []string{describe, webhooks}
	words := c.Refused.PolicySays()
	if words == "" {
		return
	}
	if webhook := c.Refused.FailsAtIt(); webhook != "" {
		ch.Title = fmt.Sprintf("have the owner of admission webhook %s mend it, or leave out of it the pods of %s: %s", webhook, c.WorkloadName(), view.Quotable(words, 240))
		ch.Commands = []string{describe, serversOfWebhooks + " | grep -w " + webhook + "  # its configuration and its server's Service: what that server logs says more"}
		return
	}
	if demand, change := onAutopilot(c, words); demand != "" {
		ch.Title = fmt.Sprintf("have the pods of %s keep to what GKE Autopilot demands: %s", c.WorkloadName(), demand)
		ch.Commands = []string{c.EditByHand(change), describe}
		return
	}
	ch.Title = fmt.Sprintf("have the pods of %s keep to the policy that denies them, or its owner let them in: %s", c.WorkloadName(), view.Quotable(words, 240))
	ch.Commands = append(ch.Commands, c.EditByHand("as it says"))
}

// serversOfWebhooks lists which configuration has which webhooks, and whose Service answers for them.
const serversOfWebhooks = `kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o jsonpath='{range .items[*]}{.kind}/{.metadata.name}{range .webhooks[*]} {.name} {.clientConfig.service.namespace}/{.clientConfig.service.name}{end}{"\n"}{end}'`

// onAutopilot says what GKE Autopilot demands of a pod with GPUs that it denies, where that is a node selector: the model in place
// of the pool, which is Google's there (cloud.google.com/kubernetes-engine/docs/how-to/autopilot-gpus).
func onAutopilot(c *edit.Workload, words string) (demand, change string) {
	spec := c.Refused.Next().Spec
	var parts, edits []string
	if _, selects := spec.NodeSelector[view.LabelGKE]; strings.Contains(words, "autogke-gpu-limitation") && !selects {
		parts, edits = append(parts, "select the GPU's model by "+view.LabelGKE), append(edits, view.LabelGKE+": MODEL, as nvidia-l4")
	}
	if strings.Contains(words, "autogke-node-affinity-selector-limitation") {
		for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
			if strings.Contains(words, "Key '"+key+"' is not allowed") {
				parts, edits = append(parts, "do not select by "+key), append(edits, "without "+key)
			}
		}
	}
	return strings.Join(parts, ", and "), "nodeSelector: " + strings.Join(edits, "; ")
}
