package edit

import (
	"fmt"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ServersOfWebhooks lists which configuration has which webhooks, and whose Service answers for them.
const ServersOfWebhooks = `kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o jsonpath='{range .items[*]}{.kind}/{.metadata.name}{range .webhooks[*]} {.name} {.clientConfig.service.namespace}/{.clientConfig.service.name}{end}{"\n"}{end}'`

// LetBeBound is for the pod that has found a node and that an admission webhook denies to be bound to it: policies that are meant for pods are
// asked about their bindings, too, where they take in subresources. nil where the scheduler's words are about anything else.
func (c *Workload) LetBeBound(cause diagnosis.CauseID, words string) *Change {
	webhook, says := admission.Denied(words)
	if webhook == "" {
		return nil
	}
	ch := LookAt(cause, fmt.Sprintf("have %s keep to the policy of webhook %s, which denies its binding, or its owner leave bindings out: %s", c.Pod.Name, webhook, view.Quotable(says, 240)), "what the webhook would say next is in no object",
		fmt.Sprintf("kubectl -n %s describe pod %s", c.Pod.Namespace, c.Pod.Name),
		ServersOfWebhooks+" | grep -w "+webhook+"  # whose it is; Kyverno's: kubectl get clusterpolicies,policies -A",
		c.EditByHand("as it says"))
	return &ch
}
