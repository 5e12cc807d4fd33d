package admission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Demands tells of quotas that want something stated, with the words of a headline, empty for
// the usual ones: a quota on CPU or memory takes only pods whose containers, those of init too,
// state them (pkg/quota/v1/evaluator/core/pods.go, Constraints). Or the API server's own
// configuration wants a quota to exist where there is none. Nothing is used up either way.
func (c *Refused) Demands() (f *view.Finding, words string) {
	if c.Next() == nil {
		return nil, ""
	}
	var says []string
	var evidence []diagnosis.Evidence
	for _, q := range c.Refusing() {
		if q.Demand != "" {
			says = append(says, q.DemandSays())
			evidence = append(evidence, q.DemandEvidence()...)
		}
	}
	if len(says) > 0 {
		return c.told(diagnosis.Proven, strings.Join(says, "; ")+"; nothing is used up by that", evidence), ""
	}
	if c.Uncovered() {
		return c.uncovered(), "no quota covers it"
	}
	if f := c.injected(); f != nil {
		return f, ""
	}
	return c.unreadSays("ResourceQuota", "failed quota: "), ""
}

// demanded are the containers that a quota wants something stated of, in the API server's
// words (plugin/pkg/admission/resourcequota/controller.go, "failed quota: Q: must specify …").
var (
	demanded = regexp.MustCompile(`failed quota: (\S+): must specify `)
	demands  = regexp.MustCompile(` for: ([^;]+)`)
)

// injected: the containers that the quota speaks of are none of the template's, so a webhook
// puts them in, and what the template states does not help.
func (c *Refused) injected() *view.Finding {
	m := demanded.FindStringSubmatch(c.Says())
	if m == nil || !slices.ContainsFunc(c.Cluster.State.Quotas, func(q *corev1.ResourceQuota) bool { return q.Namespace == c.Next().Namespace && q.Name == m[1] }) {
		return nil
	}
	var foreign []string
	for _, of := range demands.FindAllStringSubmatch(c.Says(), -1) {
		for name := range strings.SplitSeq(of[1], ",") {
			if name = strings.TrimSpace(name); !slices.Contains(foreign, name) && !slices.ContainsFunc(slices.Concat(c.Next().Spec.InitContainers, c.Next().Spec.Containers), func(k corev1.Container) bool { return k.Name == name }) {
				foreign = append(foreign, name)
			}
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return c.told(diagnosis.Likely, "quota "+m[1]+" takes only pods whose containers state what it limits, and "+strings.Join(foreign, ", ")+", which its template does not have, "+demandVerb(len(foreign))+": they are put in on the way (by a webhook), and have to state it there; nothing is used up by that", nil)
}

func demandVerb(n int) string {
	if n == 1 {
		return "does not"
	}
	return "do not"
}

// Uncovered says that the API server wants a quota that covers the pod, by its words:
// "insufficient quota to match these scopes" of a priority class that is limited to
// namespaces with a quota for it, and "insufficient quota to consume" of a resource
// (plugin/pkg/admission/resourcequota/apis, limitedResources). No object tells of that
// configuration; whether the namespace has such a quota objects do.
func (c *Refused) Uncovered() bool { return strings.Contains(c.Says(), "insufficient quota to ") }

func (c *Refused) uncovered() *view.Finding {
	ns, certainty := c.Next().Namespace, diagnosis.Likely
	says := "the API server takes such pods only in a namespace with a quota that covers them, and " + ns + " has none"
	if class := c.Next().Spec.PriorityClassName; class != "" && strings.Contains(c.Says(), "match these scopes") {
		says = fmt.Sprintf("the API server takes pods of priority class %s only in a namespace with a quota for that class, and %s has none", class, ns)
		if q := c.coveringQuota(class); q != nil {
			certainty, says = diagnosis.Possible, fmt.Sprintf("the API server wanted a quota for priority class %s; %s has %s now", class, ns, q.Name)
		}
	}
	if why := c.Cluster.State.Unread["ResourceQuota"]; why != "" {
		certainty, says = diagnosis.Possible, "the API server wants a quota that covers it; which quotas "+ns+" has was not read"
	}
	return c.told(certainty, says+": "+view.Cut(strings.Join(strings.Fields(c.Says()), " "), 160), nil)
}

// coveringQuota is one of the next pod's namespace whose scopes name the class.
func (c *Refused) coveringQuota(class string) *corev1.ResourceQuota {
	for _, q := range c.Cluster.State.Quotas {
		if q.Namespace != c.Next().Namespace || q.Spec.ScopeSelector == nil {
			continue
		}
		for _, e := range q.Spec.ScopeSelector.MatchExpressions {
			if e.ScopeName == corev1.ResourceQuotaScopePriorityClass && (e.Operator == corev1.ScopeSelectorOpExists || e.Operator == corev1.ScopeSelectorOpIn && slices.Contains(e.Values, class)) {
				return q
			}
		}
	}
	return nil
}
