package rca

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// offer adds a place to choose from.
func (q *question) offer(node string, options []placement.Option) {
	if len(options) > 0 {
		q.places = append(q.places, place{node})
		q.options = append(q.options, options)
	}
}

// free adds what nobody holds and nothing needs to be re-made for.
func (q *question) free(node string, n int) {
	if n <= 0 {
		return
	}
	q.count(n)
	q.offer(node, []placement.Option{{Fits: n}})
}

// count adds what is free and needs nothing re-made.
func (q *question) count(n int) {
	q.item.Now += n
	q.item.Repartition += n
	q.item.Hardware += n
}

// holders adds the pods that request the resource: what each would give back, it
// gives whatever becomes of the others.
func (q *question) holders(v *nodeView) {
	for _, p := range v.pods {
		n := v.requests[p][q.ask.resource]
		if t := q.tenants.of(p); n.Value() > 0 && t >= 0 {
			q.offer(v.Name, []placement.Option{{Fits: int(n.Value()), Leave: []int{t}}})
		}
	}
}

// believed says whether the report of a node can be believed about holders.
// Where it cannot, nothing there counts as free: what the scheduler would still
// give is named.
func (q *question) believed(v *nodeView) bool {
	if v.holdersKnown {
		return true
	}
	free := v.free(q.ask.resource)
	why := v.doubt
	if n := free.Value(); n > 0 {
		why += fmt.Sprintf("; %d not requested there are not taken for free", n)
	}
	q.notes.add("node", "left out: "+why, v.Name)
	return false
}

// positions says whether anybody told positions and holders of the node.
func (v *nodeView) positions() bool {
	return v.geometry != nil && v.geometry.Report.Source != nodeprobe.SourceLabels
}

// wholeGPUs counts by requests, and by holders where they are told: the lower of
// the two is certain.
func (q *question) wholeGPUs(v *nodeView) {
	if v.allocatable(q.ask.resource) == 0 {
		q.withMIG(v)
		return
	}
	free := v.free(q.ask.resource)
	n := int(free.Value())
	if v.positions() {
		if !q.believed(v) {
			return
		}
		if total, unheld := v.plainGPUs(); v.allocatable(q.ask.resource) <= int64(total) { // not shared
			n = min(n, unheld)
		}
	}
	q.free(v.Name, n)
	q.holders(v)
	q.withMIG(v)
}

// plainGPUs counts the GPUs without MIG, and those of them that nobody holds.
func (v *nodeView) plainGPUs() (total, unheld int) {
	for _, g := range v.geometry.Report.GPUs {
		if g.MIG != nil && g.MIG.Current {
			continue
		}
		if total++; len(g.Holders) == 0 && g.Healthy {
			unheld++
		}
	}
	return total, unheld
}

// withMIG names GPUs that are no whole GPUs while MIG is on.
func (q *question) withMIG(v *nodeView) {
	if len(v.gpus) > 0 && v.Labels[labelMIGStrategy] != strategySingle {
		q.notes.add("node", "with GPUs that have MIG on: they are no whole GPUs", v.Name)
	}
}

const strategySingle = "single"

// instances counts MIG instances: by positions where they are told, else by
// requests alone.
func (q *question) instances(v *nodeView) {
	switch {
	case !v.hasGPUs():
	case v.Labels[labelMIGStrategy] == strategySingle:
		q.notes.add("node", "with strategy single: it offers its instances as "+wholeGPU, v.Name)
	case !v.positions():
		if hasProfile(v.profiles(), q.ask.profile) || v.allocatable(q.ask.resource) > 0 {
			q.notes.add("node", "whose positions nobody reports: only instances that exist count", v.Name)
		}
		free := v.free(q.ask.resource)
		q.free(v.Name, int(free.Value()))
		q.holders(v)
	case q.believed(v):
		q.positioned(v)
	}
}

// positioned counts on a node whose instances and holders are known.
func (q *question) positioned(v *nodeView) {
	q.distrust(v)
	read := map[int]bool{}
	for i := range v.gpus {
		g := &v.gpus[i]
		read[g.Index] = true
		if _, ok := g.Grid.Profile(q.ask.profile); !ok {
			continue
		}
		report := v.report(g.Index)
		if !report.Healthy {
			q.notes.add("GPU", "unhealthy", v.gpuName(g.Index))
			continue
		}
		options := g.Options(q.ask.profile, placement.WholeGPU, q.tenants.holding)
		if report.MIG.Pending != report.MIG.Current {
			q.notes.add("GPU", "about to change MIG mode: it is not re-made", v.gpuName(g.Index))
			q.count(g.Fit(q.ask.profile).Idle)
			options = slices.DeleteFunc(options, func(o placement.Option) bool { return o.Remade })
		} else {
			q.index.Set(q.gpus, 0, *g)
			q.gpus++
		}
		q.offer(v.Name, options)
	}
	for _, g := range v.geometry.Report.GPUs {
		switch {
		case g.MIG != nil && !g.MIG.Current:
			q.notes.add("GPU", "with MIG off", v.gpuName(g.Index))
		case g.MIG != nil && !read[g.Index]:
			q.notes.add("GPU", "whose report makes no sense", v.gpuName(g.Index))
		}
	}
}

// distrust marks idle instances that the node does not offer as held by somebody
// unknown: the report and the device plugin disagree about them. It starts with
// GPUs that are held anyway.
func (q *question) distrust(v *nodeView) {
	surplus := map[corev1.ResourceName]int{}
	for _, g := range v.gpus {
		for _, s := range g.Slots {
			if !s.Held && v.report(g.Index).Healthy {
				surplus[corev1.ResourceName(migPrefix+spelled(s.Profile))]++
			}
		}
	}
	marked := 0
	for name, idle := range surplus {
		free := v.free(name)
		surplus[name] = idle - max(0, int(free.Value()))
	}
	for _, held := range [...]bool{true, false} {
		for i := range v.gpus {
			if v.gpus[i].Held() != held || !v.report(v.gpus[i].Index).Healthy {
				continue
			}
			for k := range v.gpus[i].Slots {
				s := &v.gpus[i].Slots[k]
				if name := corev1.ResourceName(migPrefix + spelled(s.Profile)); !s.Held && surplus[name] > 0 {
					surplus[name]--
					s.Held, s.Unknown = true, true
					marked++
				}
			}
		}
	}
	if marked > 0 {
		q.notes.add("node", "that offers fewer instances than are reported idle: the others are not counted", v.Name)
	}
}

func (v *nodeView) report(index int) nodeprobe.GPU {
	for _, g := range v.geometry.Report.GPUs {
		if g.Index == index {
			return g
		}
	}
	return nodeprobe.GPU{}
}

func (v *nodeView) gpuName(index int) string { return v.Name + "/GPU " + strconv.Itoa(index) }
