package changes

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/view"
)

// changeGPURequest lists other GPU resources of the node that have room now:
// the nearest that is not smaller, else the nearest smaller one.
func (c *Bench) changeGPURequest(n *view.Node, cause diagnosis.CauseID, a view.Ask) []edit.Change {
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
	out := make([]edit.Change, len(options))
	for i, name := range options {
		title := "ask " + string(name) + " instead of " + string(a.Resource) + want.Lost(sizeOf(name))
		out[i] = c.ChangeRequest(cause, title, edit.AskOther(a.Resource, name))
		out[i].Less = int64(max(0, want.Memory-sizeOf(name).Memory) + max(0, want.Compute-sizeOf(name).Compute))
		out[i].Untestable = layouts.WholeDoubt(n, name)
	}
	return out
}

// otherName asks GPUs of another maker by the name under which the node offers them.
func (c *Bench) otherName(n *view.Node) []edit.Change {
	for _, name := range view.SortedNames(c.Wants) {
		other := makers.OtherName(n, name)
		if q := n.Status.Allocatable[name]; other == "" || !q.IsZero() {
			continue
		}
		title := "ask " + string(other) + " instead of " + string(name)
		if part, parted := strings.CutPrefix(string(other), "amd.com/"); parted && !strings.HasPrefix(part, "spx") {
			title += " (a part of a GPU, with a part of its memory)"
		}
		return []edit.Change{c.ChangeRequest(diagnosis.SharedResourceRenamed, title, edit.AskOther(name, other))}
	}
	return nil
}

// real says whether a node has what it offers: what its device plugin still counts of a
// former layout the kubelet would not get, and a whole GPU whose MIG mode waits for a
// reset is none after it.
func (c *Bench) real(n *view.Node, name corev1.ResourceName, count int64) bool {
	if len(n.GPUs) == 0 && name == view.WholeGPU {
		return layouts.FormerWhole(n) == nil && (n.Geometry == nil || !c.Cluster.ClassOf(n).Pending)
	}
	profile, mig := strings.CutPrefix(string(name), view.MIGPrefix)
	if !mig || n.Geometry == nil || layouts.Shares(n, view.Ask{Resource: name}) || strings.HasSuffix(profile, view.SharedSuffix) {
		return true
	}
	return c.Cluster.ClassOf(n).Made[profile] >= n.HeldOf(name)+count
}

// sizes says how to compare the node's GPU resources with what is asked: by slices,
// which the board has in common, unless the profile is of another board.
func sizes(n *view.Node, a view.Ask) func(corev1.ResourceName) view.GPUSize {
	profiles := n.Profiles()
	foreign := a.Profile != "" && !layouts.HasProfile(n, a.Profile)
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
