package admission

import (
	"fmt"
	"slices"
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
		claims, by := c.templateClaims(bad.Container, bad.Resource), c.defaulted(bad)
		if !bad.limited {
			claims = append(claims, c.unlimited(bad)...)
		}
		for _, e := range by {
			claims = append(claims, e.Claims...)
		}
		evidence = append(evidence, diagnosis.Fact(view.ObjectRef(owner.Kind, owner.Namespace, owner.Name), "its pods: "+bad.Says(), claims...))
		evidence = append(evidence, by...)
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

// unlimited claims that the template limits a container to nothing of a resource.
func (c *Refused) unlimited(v InvalidRequest) []diagnosis.Claim {
	spec, list := c.Cluster.Template(c.All[0].Owner), "containers"
	if spec == nil {
		return nil
	}
	if v.Init {
		list = "initContainers"
	}
	for _, k := range slices.Concat(spec.Containers, spec.InitContainers) {
		if _, limited := k.Resources.Limits[v.Resource]; limited && k.Name == v.Container {
			return nil // something takes it away
		}
	}
	return []diagnosis.Claim{diagnosis.That("spec.template.spec."+list+"[name="+v.Container+"].resources.limits["+string(v.Resource)+"]", "", diagnosis.Absent, "")}
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
