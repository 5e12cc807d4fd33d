package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// want is what one container asks of the device plugin.
type want struct {
	pod       *corev1.Pod
	container string
	resource  string
	count     int64
}

// wantsOf lists what a pod asks of a node's GPUs.
func wantsOf(p *corev1.Pod) []want {
	var out []want
	for _, c := range p.Spec.Containers {
		for name, q := range c.Resources.Limits {
			if n := string(name); n == gpuResource || strings.HasPrefix(n, migResources) {
				out = append(out, want{p, c.Name, n, q.Value()})
			}
		}
	}
	slices.SortFunc(out, func(a, b want) int { return cmp.Compare(a.container+a.resource, b.container+b.resource) })
	return out
}

// assign frees what pods that are gone held and gives the others what they ask
// for, lowest GPU and slice first. It returns the pods for which nothing is left,
// with the kubelet's sentence, and whether the report changed.
func assign(geo *nodeprobe.NodeGeometry, pods []*corev1.Pod, strategy string, spread bool) (refused map[*corev1.Pod]string, changed bool) {
	alive := map[nodeprobe.Holder]bool{}
	for _, p := range pods {
		for _, c := range p.Spec.Containers {
			alive[nodeprobe.Holder{Namespace: p.Namespace, Pod: p.Name, Container: c.Name}] = true
		}
	}
	held := map[nodeprobe.Holder]map[string]int64{}
	for i := range geo.Report.GPUs {
		g := &geo.Report.GPUs[i]
		changed = release(g, alive) || changed
		for _, s := range seats(g, strategy) {
			if h := s.holder(); h != nil {
				if held[*h] == nil {
					held[*h] = map[string]int64{}
				}
				held[*h][s.resource]++
			}
		}
	}
	refused = map[*corev1.Pod]string{}
	for _, p := range pods {
		for _, w := range wantsOf(p) {
			h := nodeprobe.Holder{Namespace: p.Namespace, Pod: p.Name, Container: w.container}
			missing := w.count - held[h][w.resource]
			if missing <= 0 {
				continue
			}
			given := seat(geo, strategy, w.resource, missing, h, spread)
			changed = changed || given > 0
			if given < missing {
				refused[p] = fmt.Sprintf("Allocate failed due to requested number of devices unavailable for %s. Requested: %d, Available: %d, which is unexpected", w.resource, w.count, given)
			}
		}
	}
	return refused, changed
}

func release(g *nodeprobe.GPU, alive map[nodeprobe.Holder]bool) bool {
	changed := false
	for k := range g.Instances {
		if h := g.Instances[k].Holder; h != nil && !alive[*h] {
			g.Instances[k].Holder = nil
			changed = true
		}
	}
	kept := slices.DeleteFunc(slices.Clone(g.Holders), func(h nodeprobe.Holder) bool { return !alive[h] })
	if len(kept) != len(g.Holders) {
		g.Holders, changed = kept, true
	}
	return changed
}

// place is something one container can hold: an instance or a whole GPU.
type place struct {
	resource string
	gpu      *nodeprobe.GPU
	instance *nodeprobe.Instance
}

func (p place) holder() *nodeprobe.Holder {
	if p.instance != nil {
		return p.instance.Holder
	}
	if len(p.gpu.Holders) > 0 {
		return &p.gpu.Holders[0]
	}
	return nil
}

func (p place) give(h nodeprobe.Holder) {
	if p.instance != nil {
		p.instance.Holder = &h
		return
	}
	p.gpu.Holders = []nodeprobe.Holder{h}
}

func seats(g *nodeprobe.GPU, strategy string) []place {
	if !partitioned(*g) {
		return []place{{gpuResource, g, nil}}
	}
	var out []place
	for k := range g.Instances {
		name := migResources + strings.ReplaceAll(g.Instances[k].Profile, "+", ".")
		if strategy == "single" {
			name = gpuResource
		}
		out = append(out, place{name, g, &g.Instances[k]})
	}
	return out
}

// seat gives up to count free places to the holder.
func seat(geo *nodeprobe.NodeGeometry, strategy, resource string, count int64, h nodeprobe.Holder, spread bool) int64 {
	given := int64(0)
	for given < count {
		var best *place
		fewest := 0
		for i := range geo.Report.GPUs {
			all := seats(&geo.Report.GPUs[i], strategy)
			taken := 0
			for _, s := range all {
				if s.holder() != nil {
					taken++
				}
			}
			for k := range all {
				if all[k].resource == resource && all[k].holder() == nil && (best == nil || spread && taken < fewest) {
					best, fewest = &all[k], taken
				}
			}
		}
		if best == nil {
			return given
		}
		best.give(h)
		given++
	}
	return given
}
