package changes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// changeGPURequest lists other GPU resources of the node that have room now:
// the nearest that is not smaller, else the nearest smaller one.
func (c *Bench) changeGPURequest(n *view.Node, cause diagnosis.CauseID, a view.Ask) []Change {
	var options []corev1.ResourceName
	for _, spare := range n.SpareGPUs() {
		if spare.Name != a.Resource && spare.Free >= a.Count && c.real(n, spare.Name, a.Count) {
			options = append(options, spare.Name)
		}
	}
	if len(options) == 0 {
		return c.fewerInstances(n, cause, a)
	}
	sizeOf := sizes(n, a)
	want := sizeOf(a.Resource)
	slices.SortFunc(options, func(x, y corev1.ResourceName) int {
		p, q := sizeOf(x), sizeOf(y)
		return cmp.Or(view.Rank(p.Order() >= want.Order())-view.Rank(q.Order() >= want.Order()), cmp.Compare(view.Abs(p.Order()-want.Order()), view.Abs(q.Order()-want.Order())), strings.Compare(string(x), string(y)))
	})
	options = options[:min(len(options), 1)]
	out := make([]Change, len(options))
	for i, name := range options {
		title := "ask " + string(name) + " instead of " + string(a.Resource) + want.Lost(sizeOf(name))
		if known, ok := c.requests[title]; ok {
			out[i] = known
			continue
		}
		out[i] = c.changeRequest(cause, title, askOther(a.Resource, name))
	}
	return out
}

// real says whether a node has what it offers: what its device plugin still counts of a
// former layout the kubelet would not get, and a whole GPU whose MIG mode waits for a
// reset is none after it.
func (c *Bench) real(n *view.Node, name corev1.ResourceName, count int64) bool {
	if len(n.GPUs) == 0 && name == view.WholeGPU {
		return n.Geometry == nil || !c.Cluster.ClassOf(n).Pending
	}
	profile, mig := strings.CutPrefix(string(name), view.MIGPrefix)
	if !mig || n.Geometry == nil || causes.Shares(n, view.Ask{Resource: name}) || strings.HasSuffix(profile, view.SharedSuffix) {
		return true
	}
	return c.Cluster.ClassOf(n).Made[profile] >= n.HeldOf(name)+count
}

// sizes says how to compare the node's GPU resources with what is asked: by slices,
// which the board has in common, unless the profile is of another board.
func sizes(n *view.Node, a view.Ask) func(corev1.ResourceName) view.GPUSize {
	profiles := n.Profiles()
	foreign := a.Profile != "" && !causes.HasProfile(n, a.Profile)
	single := singleProfile(n)
	return func(name corev1.ResourceName) view.GPUSize {
		profile, mig := strings.CutPrefix(strings.TrimSuffix(string(name), view.SharedSuffix), view.MIGPrefix)
		if !mig && single != "" {
			profile, mig = single, true
		}
		if mig && foreign {
			if compute, memory, _, ok := view.ReadProfile(profile); ok {
				return view.GPUSize{Memory: memory, Compute: compute}
			}
		}
		for _, p := range profiles {
			if mig && !foreign && view.Spelled(p.Name) == profile {
				return view.GPUSize{Memory: p.MemorySlices, Compute: p.ComputeSlices}
			}
		}
		return view.GPUSize{Memory: 1 << 20, Compute: 1 << 10} // a whole GPU
	}
}

// singleProfile is what a nvidia.com/gpu of the node is under strategy single, as GPU
// feature discovery writes it behind the product; empty where it is a whole GPU.
func singleProfile(n *view.Node) string {
	if n.Manager().Strategy != view.StrategySingle {
		return ""
	}
	_, profile, _ := strings.Cut(n.Labels["nvidia.com/gpu.product"], "-MIG-")
	return strings.TrimSuffix(profile, "-SHARED")
}

// lowerRequest asks for as much CPU, memory and ephemeral storage as the node has free,
// when that is all it is short of.
func (c *Bench) lowerRequest(n *view.Node, lack view.Deficits, fits bool) (Change, bool) {
	if !fits {
		lack = view.Deficits{}
		for name, q := range c.Wants {
			free := n.Free(name)
			if d := q.MilliValue() - free.MilliValue(); d > 0 {
				lack[name] = d
			}
		}
	}
	if len(c.Pod.Spec.Containers) != 1 {
		return Change{}, false
	}
	for name := range lack {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
			return Change{}, false
		}
	}
	most := corev1.ResourceList{}
	var texts []string
	for name := range lack {
		free := n.Free(name)
		if free.Sign() <= 0 {
			return Change{}, false
		}
		most[name] = free
		texts = append(texts, fmt.Sprintf("%s %s", free.String(), name))
	}
	if len(most) == 0 {
		return Change{}, false
	}
	slices.Sort(texts)
	return c.changeRequest(diagnosis.HostResourcesShort, "ask for "+strings.Join(texts, ", ")+" (less than asked)", askAtMost(most)), true
}

// changeRequest edits what each of the containers asks, those of init too.
func (c *Bench) changeRequest(cause diagnosis.CauseID, title string, edit func(*corev1.ResourceRequirements)) Change {
	return c.once(title, func(title string) Change {
		return c.editContainers(Change{Kind: diagnosis.ChangeRequest, Cause: cause, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title + " in " + c.WorkloadName()}, func(containers []corev1.Container) {
			for i := range containers {
				edit(&containers[i].Resources)
			}
		})
	})
}

// editContainers completes a change of the workload's containers; edit is called with
// them, and with those of init.
func (c *Bench) editContainers(ch Change, edit func([]corev1.Container)) Change {
	ch.Pod = func(p *corev1.Pod) {
		edit(p.Spec.Containers)
		edit(p.Spec.InitContainers)
	}
	spec := c.Cluster.Template(c.Incident.Workload)
	if spec == nil {
		spec = &c.Pod.Spec
	}
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
	c.editTemplate(&ch, patch, false)
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

// askAtMost lowers, and raises nothing.
func askAtMost(most corev1.ResourceList) func(*corev1.ResourceRequirements) {
	return func(r *corev1.ResourceRequirements) {
		for name, q := range most {
			if own := asked(r, name); own.Cmp(q) > 0 {
				setResource(r, name, q)
			}
		}
	}
}

// askOther asks as many of another GPU resource instead, on top of what is asked of it
// already.
func askOther(from, to corev1.ResourceName) func(*corev1.ResourceRequirements) {
	return func(r *corev1.ResourceRequirements) {
		q := asked(r, from)
		if q.IsZero() {
			return
		}
		delete(r.Requests, from)
		delete(r.Limits, from)
		q.Add(asked(r, to))
		setResource(r, to, q)
	}
}

// asked is what a container asks: its request, for which its limit stands in.
func asked(r *corev1.ResourceRequirements, name corev1.ResourceName) resource.Quantity {
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
	if _, ok := r.Limits[name]; ok || strings.HasPrefix(string(name), "nvidia.com/") {
		if r.Limits == nil {
			r.Limits = corev1.ResourceList{}
		}
		r.Limits[name] = q
	}
}
