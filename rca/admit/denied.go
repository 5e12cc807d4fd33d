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
func (a *answer) keepToPolicy() {
	c := a.c
	a.Title = "see which policy denies it: its webhook is named in the refusal"
	a.Commands = []string{a.describe, webhooks}
	words := c.Refused.PolicySays()
	if words == "" {
		return
	}
	if webhook := c.Refused.FailsAtIt(); webhook != "" {
		a.Title = fmt.Sprintf("have the owner of admission webhook %s mend it, or leave out of it the pods of %s: %s", webhook, c.WorkloadName(), view.Quotable(words, 240))
		a.Commands = []string{a.describe, edit.ServersOfWebhooks + " | grep -w " + webhook + "  # its configuration and its server's Service: what that server logs says more"}
		return
	}
	if demand, change := onAutopilot(c, words); demand != "" {
		a.Title = fmt.Sprintf("have the pods of %s keep to what GKE Autopilot demands: %s", c.WorkloadName(), demand)
		a.Commands = []string{c.EditByHand(change), a.describe}
		return
	}
	if fields, command := onKnative(c.Refused.Says()); fields != "" {
		a.Title = fmt.Sprintf("have Knative let services set %s, which it does not by default, or leave that out of %s", fields, c.WorkloadName())
		a.Commands = []string{command, a.describe, c.EditByHand("or this: without " + fields)}
		return
	}
	a.Title = fmt.Sprintf("have the pods of %s keep to the policy that denies them, or its owner let them in: %s", c.WorkloadName(), view.Quotable(words, 240))
	a.Commands = append(a.Commands, c.EditByHand("as it says"))
}

// onKnative are fields of a pod that Knative's webhook denies a service to set, and the command that lets all services do so:
// each has a flag of its own (serving, config/core/configmaps/features.yaml). Empty where its words are about anything else.
func onKnative(refusal string) (fields, command string) {
	_, listed, denies := strings.Cut(refusal, "must not set the field(s): ")
	if !denies || !strings.Contains(refusal, "serving.knative.dev") {
		return "", ""
	}
	var names, flags []string
	for field := range strings.SplitSeq(listed, ",") {
		name := strings.Trim(strings.TrimPrefix(strings.TrimSpace(field), "spec.template.spec."), ". ")
		if flag := knativeFlags[name]; flag != "" && !slices.Contains(names, name) {
			names, flags = append(names, name), append(flags, fmt.Sprintf(`"%s":"enabled"`, flag))
		}
	}
	if len(names) == 0 {
		return "", ""
	}
	return strings.Join(names, ", "), "kubectl -n knative-serving patch configmap config-features --type=merge -p '{\"data\":{" + strings.Join(flags, ",") + "}}'  # where Knative's operator makes it, in its KnativeServing: spec.config.features"
}

// knativeFlags are those of fields by which pods with GPUs are placed.
var knativeFlags = map[string]string{
	"nodeSelector": "kubernetes.podspec-nodeselector", "tolerations": "kubernetes.podspec-tolerations", "affinity": "kubernetes.podspec-affinity",
	"runtimeClassName": "kubernetes.podspec-runtimeclassname", "schedulerName": "kubernetes.podspec-schedulername", "priorityClassName": "kubernetes.podspec-priorityclassname",
	"topologySpreadConstraints": "kubernetes.podspec-topologyspreadconstraints", "securityContext": "kubernetes.podspec-securitycontext",
}

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
