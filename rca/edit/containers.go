package edit

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
)

// ChangeRequest edits what each of the containers asks, those of init too.
func (c *Workload) ChangeRequest(cause diagnosis.CauseID, title string, edit func(*corev1.ResourceRequirements)) Change {
	return c.Once(title, func(title string) Change {
		return c.EditContainers(Change{Kind: diagnosis.ChangeRequest, Cause: cause, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title + " in " + c.WorkloadName()}, func(containers []corev1.Container) {
			for i := range containers {
				edit(&containers[i].Resources)
			}
		})
	})
}

// EditContainers completes a change of the workload's containers; edit is called with
// them, and with those of init.
func (c *Workload) EditContainers(ch Change, edit func([]corev1.Container)) Change {
	ch.Pod = func(p *corev1.Pod) {
		edit(p.Spec.Containers)
		edit(p.Spec.InitContainers)
	}
	spec := c.PodSpec()
	patch := map[string]any{}
	for key, was := range map[string][]corev1.Container{"containers": spec.Containers, "initContainers": spec.InitContainers} {
		is := make([]corev1.Container, len(was))
		for i := range was {
			is[i] = *was[i].DeepCopy()
		}
		edit(is)
		var edited []map[string]any
		for i, k := range is {
			if resources := listsPatch(was[i].Resources, k.Resources); len(resources) > 0 {
				edited = append(edited, map[string]any{"name": k.Name, "resources": resources})
			}
		}
		if len(edited) > 0 {
			patch[key] = edited
		}
	}
	if set := c.changedSince(); set != nil && len(patch) == 0 {
		return c.madeAgain(ch, set)
	}
	c.EditTemplate(&ch, patch, false)
	return ch
}

// listsPatch is what makes requests and limits of was into is, and nothing else: the
// rest of a container is not known here in full (env has no values).
func listsPatch(was, is corev1.ResourceRequirements) map[string]any {
	out := map[string]any{}
	for key, lists := range map[string][2]corev1.ResourceList{"requests": {was.Requests, is.Requests}, "limits": {was.Limits, is.Limits}} {
		patch := map[string]any{}
		for name := range lists[0] {
			patch[string(name)] = nil
		}
		for name, q := range lists[1] {
			patch[string(name)] = q
			if old, ok := lists[0][name]; ok && old.Cmp(q) == 0 {
				delete(patch, string(name))
			}
		}
		if len(patch) > 0 {
			out[key] = patch
		}
	}
	return out
}

// AskAtMost lowers, and raises nothing.
func AskAtMost(most corev1.ResourceList) func(*corev1.ResourceRequirements) {
	return func(r *corev1.ResourceRequirements) {
		for name, q := range most {
			if own := Asked(r, name); own.Cmp(q) > 0 {
				setResource(r, name, q)
			}
		}
	}
}

// AskOther asks as many of another GPU resource instead, on top of what is asked of it
// already.
func AskOther(from, to corev1.ResourceName) func(*corev1.ResourceRequirements) {
	return func(r *corev1.ResourceRequirements) {
		q := Asked(r, from)
		if q.IsZero() {
			return
		}
		delete(r.Requests, from)
		delete(r.Limits, from)
		q.Add(Asked(r, to))
		setResource(r, to, q)
	}
}

// Asked is what a container asks: its request, for which its limit stands in.
func Asked(r *corev1.ResourceRequirements, name corev1.ResourceName) resource.Quantity {
	if q, ok := r.Requests[name]; ok {
		return q.DeepCopy()
	}
	return r.Limits[name].DeepCopy()
}

// setResource writes the request, and the limit where there is one or, of devices, has
// to be.
func setResource(r *corev1.ResourceRequirements, name corev1.ResourceName, q resource.Quantity) {
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	r.Requests[name] = q
	if _, ok := r.Limits[name]; ok || strings.Contains(string(name), "/") {
		if r.Limits == nil {
			r.Limits = corev1.ResourceList{}
		}
		r.Limits[name] = q
	}
}
