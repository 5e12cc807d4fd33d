package admission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// calledAt is the Service behind a webhook that the API server could not call, as it names it
// (apiserver, pkg/util/webhook/client.go).
var calledAt = regexp.MustCompile(`failed calling webhook .*https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc[:/]`)

// unserved are the words for a Service that nobody ready stands behind: the API server's, where it
// looks for endpoints itself, and else the network's.
var unserved = []string{"no endpoints available for service", "connect: connection refused"}

// service is where a Service is.
type service struct{ namespace, name string }

// unservedBy is the Service of a webhook that answers nobody, by a refusal; false where the refusal
// is about something else.
func unservedBy(refusal string) (service, bool) {
	m := calledAt.FindStringSubmatch(refusal)
	if m == nil || !slices.ContainsFunc(unserved, func(words string) bool { return strings.Contains(refusal, words) }) {
		return service{}, false
	}
	return service{m[2], m[1]}, true
}

// webhookDown is about a webhook that does not answer. Where it is asked about pods of the namespace
// that its own server is of, nobody can bring that server back before the webhook leaves them alone.
func (c *Refused) webhookDown() APIRefusal {
	r := APIRefusal{Kind: WebhookDown, words: "an admission webhook fails", certainty: diagnosis.Possible, says: "an admission webhook does not answer the API server: whatever it is asked about cannot be made"}
	of, is := unservedBy(c.Says())
	if !is || c.Cluster.State.Unread["Pod"] != "" || c.comesUp(of.namespace) {
		return r
	}
	out := c.lockedOut(of)
	if len(out) == 0 {
		return r
	}
	r.Kind, r.Name, r.words = WebhookLocksOut, of.namespace, "a webhook blocks its own server"
	r.says = fmt.Sprintf("an admission webhook does not answer the API server, and it is asked about the pods of %s, too, where its own server (Service %s) is to run: none of them can be made while it is down", of.namespace, of.name)
	for _, o := range out[:min(len(out), mostLockedOut)] {
		if !slices.ContainsFunc(c.All, func(own incident.Refusal) bool { return own.Owner == o.Owner }) { // of these it is told anyway
			r.evidence = append(r.evidence, diagnosis.Fact(view.ObjectRef(o.Owner.Kind, o.Owner.Namespace, o.Owner.Name), "has none of its pods: that webhook refuses them, too", c.lacksClaims(o)...))
		}
	}
	return r
}

// mostLockedOut is how many owners are named that a webhook leaves without pods.
const mostLockedOut = 3

// lockedOut are those of the namespace of a webhook's server that have no pod because of that webhook.
func (c *Refused) lockedOut(by service) []incident.Refusal {
	var out []incident.Refusal
	for _, r := range c.Cluster.Refusals {
		if of, is := unservedBy(r.Says); is && of == by && r.Owner.Namespace == by.namespace && r.Missing == r.Wants {
			out = append(out, r)
		}
	}
	return out
}

// comesUp says whether a pod of a namespace exists and is not ready yet: it may be the server.
func (c *Refused) comesUp(namespace string) bool {
	return slices.ContainsFunc(c.Cluster.State.Pods, func(p *corev1.Pod) bool {
		return p.Namespace == namespace && !view.Ended(p) && !view.Ready(p)
	})
}
