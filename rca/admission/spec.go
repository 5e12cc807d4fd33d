package admission

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// The kinds of refusals of a pod's spec by itself: validation takes none like it, whatever the cluster has.
const (
	UnnamedClaim = "claim that is not named"
	InvalidSpec  = "spec that is invalid"
)

// unnamedClaim is an entry of spec.resourceClaims that names neither a claim nor a template: as manifests of
// Kubernetes before 1.31 do, whose "source" the API server drops without a word (core/validation, "must specify one of").
// Near is the template of its namespace, where there is one alone.
func (c *Refused) unnamedClaim() (APIRefusal, bool) {
	for _, k := range c.Next().Spec.ResourceClaims {
		if k.ResourceClaimName != nil || k.ResourceClaimTemplateName != nil {
			continue
		}
		o := c.All[0].Owner
		entry := "spec.template.spec.resourceClaims[name=" + k.Name + "]"
		r := APIRefusal{Kind: UnnamedClaim, Name: k.Name, words: "its template names no claim", certainty: diagnosis.Proven,
			says: fmt.Sprintf("entry %s of resourceClaims in its template names neither a ResourceClaim nor a template of one", k.Name),
			evidence: []diagnosis.Evidence{diagnosis.Fact(view.ObjectRef(o.Kind, o.Namespace, o.Name), "resourceClaims has "+k.Name+", and no name of a claim or template with it",
				diagnosis.That(entry+".name", "", diagnosis.Is, k.Name), diagnosis.That(entry+".resourceClaimName", "", diagnosis.Absent, ""), diagnosis.That(entry+".resourceClaimTemplateName", "", diagnosis.Absent, ""))}}
		r.Near = c.onlyClaimTemplate()
		return r, true
	}
	return APIRefusal{}, false
}

// onlyClaimTemplate is the ResourceClaimTemplate of the pods' namespace; empty where there is none, or more than one.
func (c *Refused) onlyClaimTemplate() string {
	name := ""
	for _, t := range c.Cluster.State.ClaimTemplates {
		if t.Namespace != c.Next().Namespace {
			continue
		}
		if name != "" {
			return ""
		}
		name = t.Name
	}
	return name
}

// invalidSpec quotes what validation minds: "Pod "x" is invalid: spec.…".
func (c *Refused) invalidSpec() APIRefusal {
	_, what, _ := strings.Cut(strings.Join(strings.Fields(c.Says()), " "), " is invalid: ")
	field, _, _ := strings.Cut(what, ": ")
	if !strings.HasPrefix(field, "spec.") && !strings.HasPrefix(field, "metadata.") {
		field = ""
	}
	return APIRefusal{Kind: InvalidSpec, Name: field, words: "its pods are invalid", certainty: diagnosis.Possible, says: "validation refuses what its template, or what changes its pods on the way, makes"}
}

// denied is how the API server tells of an admission webhook that denies a request (apiserver, pkg/admission/plugin/webhook/errors).
var denied = regexp.MustCompile(`admission webhook "([a-zA-Z0-9.-]+)" denied the request:? ?(.*)`)

// Denied is the admission webhook that words say has denied a request, and what it says to that; empty where they are about anything else.
func Denied(words string) (webhook, says string) {
	if m := denied.FindStringSubmatch(strings.Join(strings.Fields(words), " ")); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// PolicySays is what an admission webhook says in its denial, in its own words; empty where it says nothing.
func (c *Refused) PolicySays() string {
	_, words := Denied(c.Says())
	return words
}

// webhookFails is a denial for an error of the webhook's own: as it says itself (StatusReasonInternalError of apimachinery), of the
// template by which it writes into pods (text/template of Go, as Istio's injector), or a panic that controller-runtime caught.
var webhookFails = regexp.MustCompile(`admission webhook "([a-zA-Z0-9.-]+)" denied the request: (?:Internal error occurred: |(?:[\w -]+: )*template: \S+:\d+(?::\d+)?: |panic: .* \[recovered\])`)

// FailsAtIt is the webhook that denies the pods because it fails at them itself; empty where it judges them.
func (c *Refused) FailsAtIt() string {
	if m := webhookFails.FindStringSubmatch(strings.Join(strings.Fields(c.Says()), " ")); m != nil {
		return m[1]
	}
	return ""
}
