package admission

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Invalid tells of requests: validation refuses the next pod, for devices cannot be
// overcommitted or cut. A template is held to the same, so on a live cluster it is the
// default of a LimitRange that made the pod so (a least without a most defaults the
// request and no limit), or a webhook, and only the refusal tells of that.
func (c *Refused) Invalid() *view.Finding {
	if c.Next() == nil {
		return nil
	}
	var says []string
	var evidence []diagnosis.Evidence
	owner := c.All[0].Owner
	for _, bad := range InvalidRequests(c.Next()) {
		says = append(says, bad.Says())
		evidence = append(evidence, diagnosis.Evidence{Ref: view.ObjectRef(owner.Kind, owner.Namespace, owner.Name), Fact: "its pods: " + bad.Says()})
		evidence = append(evidence, c.defaulted(bad)...)
	}
	if len(says) > 0 {
		return c.told(diagnosis.Proven, strings.Join(says, "; "), evidence)
	}
	for _, phrase := range []string{"Limit must be set for non overcommitable resources", "must be equal to nvidia.com/"} {
		if strings.Contains(c.Says(), phrase) {
			return c.told(diagnosis.Possible, "something changes its pods, and the API server said: "+view.Cut(c.Says(), 160), nil)
		}
	}
	return nil
}

// defaulted names the LimitRanges that filled in what the template does not say.
func (c *Refused) defaulted(v InvalidRequest) []diagnosis.Evidence {
	spec := c.Cluster.Template(c.Workload)
	if spec == nil {
		return nil
	}
	for _, k := range spec.Containers {
		_, requested := k.Resources.Requests[v.Resource]
		_, limited := k.Resources.Limits[v.Resource]
		if k.Name == v.Container && (requested || limited) {
			return nil // its own
		}
	}
	var out []diagnosis.Evidence
	for _, lr := range c.Cluster.State.LimitRanges {
		for _, item := range lr.Spec.Limits {
			request, ok := item.DefaultRequest[v.Resource]
			if !ok {
				request, ok = item.Min[v.Resource] // as the API server completes it
			}
			if ok && lr.Namespace == c.Next().Namespace && item.Type == corev1.LimitTypeContainer {
				out = append(out, diagnosis.Fact(view.ObjectRef("LimitRange", lr.Namespace, lr.Name), fmt.Sprintf("makes %s %s the default request", request.String(), v.Resource), diagnosis.That("spec.limits[*].defaultRequest", string(v.Resource), diagnosis.Is, request.String())))
			}
		}
	}
	return out
}
