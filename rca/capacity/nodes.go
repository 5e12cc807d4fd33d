package capacity

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// offer is what a node has to give.
type offer struct {
	node                       *view.Node
	now, repartition, hardware int
	places                     []ways
}

// ways are the options of one GPU of a node or, where gpu is negative, of the node.
type ways struct {
	gpu     int
	options []placement.Option
}

// free adds what nobody holds and nothing needs to be re-made for.
func (o *offer) free(n int) {
	if n <= 0 {
		return
	}
	o.count(n, n, n)
	o.place(wholeNode, []placement.Option{{Fits: n}})
}

func (o *offer) count(now, repartition, hardware int) {
	o.now, o.repartition, o.hardware = o.now+now, o.repartition+repartition, o.hardware+hardware
}

// wholeNode stands for no GPU in particular.
const wholeNode = -1

func (o *offer) place(gpu int, options []placement.Option) {
	if len(options) > 0 {
		o.places = append(o.places, ways{gpu, options})
	}
}

// count counts what a node has to give, as far as the guest's CPU and memory go.
func (q *question) count(o *offer) {
	room := q.room(o.node, nil)
	q.item.Now += min(o.now, room)
	q.item.Repartition += min(o.repartition, room)
	q.item.Hardware += min(o.hardware, room)
	if o.hardware > room {
		q.notes.add("node", "with less CPU, memory or room for pods than GPUs", o.node.Name)
	}
	for _, p := range q.roomy(o) {
		q.places = append(q.places, place{o.node, p.gpu})
		q.options = append(q.options, p.options)
	}
}

// offerHolders adds the pods that request the resource: what each would give back, it
// gives whatever becomes of the others. Where pods request more than the node has, as they
// do once a GPU of it is sick, who leaves first gives nothing: nobody is counted there.
func (q *question) offerHolders(o *offer) {
	v := o.node
	if free := v.Free(q.ask.Resource); free.Sign() < 0 {
		q.notes.add("node", "whose pods hold more than it has: nobody is counted on to leave it", v.Name)
		return
	}
	for _, p := range v.Pods {
		n := v.Contribution(p, q.ask.Resource) / 1000
		if n <= 0 {
			continue
		}
		if q.taken.gone[p] {
			o.place(wholeNode, []placement.Option{{Fits: int(n)}})
		} else if t := q.tenants.Of(p); t >= 0 {
			o.place(wholeNode, []placement.Option{{Fits: int(n), Leave: []int{t}}})
		}
	}
}

// unwell names the GPUs of a node that its report calls unhealthy, as far as they matter.
func (q *question) unwell(v *view.Node, matters func(nodeprobe.GPU) bool) {
	for _, g := range v.SickGPUs() {
		if matters(g) {
			q.notes.add("GPU", "unhealthy", gpuName(v, g.Index))
		}
	}
}

func partitioned(g nodeprobe.GPU) bool { return g.MIG != nil && g.MIG.Current }

// believed says whether the report of a node can be believed about holders, where there is
// one, and about all of its GPUs. Where it cannot, nothing there counts as free: what the
// scheduler would still give is named.
func (q *question) believed(v *view.Node) bool {
	if v.HoldersKnown && !v.Unreadable {
		return true
	}
	requested := v.Requested[q.ask.Resource]
	why := v.Doubt
	if n := v.Allocatable(q.ask.Resource) - requested.Value(); n > 0 {
		why += fmt.Sprintf("; %d not requested there are not taken for free", n)
	}
	q.notes.add("node", "left out: "+why, v.Name)
	return false
}

// positions says whether anybody told positions and holders of the node.
func positions(v *view.Node) bool {
	return v.Geometry != nil && v.Geometry.Report.Source != nodeprobe.SourceLabels
}

// wholeGPUs counts by requests, and by holders where they are told: the lower of
// the two is certain.
func (q *question) wholeGPUs(o *offer) {
	v := o.node
	if v.Allocatable(q.ask.Resource) == 0 {
		q.withMIG(v)
		return
	}
	free := v.Free(q.ask.Resource)
	n := int(free.Value())
	q.unwell(v, func(g nodeprobe.GPU) bool { return !partitioned(g) })
	if (positions(v) || v.Unreadable) && !q.believed(v) {
		return
	}
	if positions(v) {
		if total, unheld := plainGPUs(v); v.Allocatable(q.ask.Resource) <= int64(total) { // not shared
			n = min(n, unheld)
		}
	}
	o.free(n)
	q.offerHolders(o)
	q.withMIG(v)
}

// plainGPUs counts the GPUs without MIG, and those of them that nobody holds.
func plainGPUs(v *view.Node) (total, unheld int) {
	for _, g := range v.Geometry.Report.GPUs {
		if partitioned(g) {
			continue
		}
		if total++; len(g.Holders) == 0 && g.Healthy {
			unheld++
		}
	}
	return total, unheld
}

// withMIG names GPUs that are no whole GPUs while MIG is on.
func (q *question) withMIG(v *view.Node) {
	if len(v.GPUs) > 0 && v.Labels[view.LabelMIGStrategy] != view.StrategySingle {
		q.notes.add("node", "with GPUs that have MIG on: they are no whole GPUs", v.Name)
	}
}

// instances counts MIG instances: by positions where they are told, else by
// requests alone.
func (q *question) instances(o *offer) {
	v := o.node
	switch {
	case !v.HasGPUs():
	case v.Labels[view.LabelMIGStrategy] == view.StrategySingle:
		q.notes.add("node", "with strategy single: it offers its instances as "+view.WholeGPU, v.Name)
	case !positions(v) && !v.Unreadable:
		if view.HasProfile(v.Profiles(), q.ask.Profile) || v.Allocatable(q.ask.Resource) > 0 {
			q.notes.add("node", "whose positions nobody reports: only instances that exist count", v.Name)
		}
		free := v.Free(q.ask.Resource)
		o.free(int(free.Value()))
		q.offerHolders(o)
	case q.believed(v):
		q.positioned(o)
	}
}

// positioned counts on a node whose instances and holders are known.
func (q *question) positioned(o *offer) {
	v := o.node
	q.distrust(v)
	q.show(v)
	gpus, each, settled := []placement.GPU{}, q.each(v), true
	for i := range v.GPUs {
		g := v.GPUs[i]
		if _, ok := g.Grid.Profile(q.ask.Profile); !ok {
			continue
		}
		if g.Sick {
			q.notes.add("GPU", "unhealthy", gpuName(v, g.Index))
			continue
		}
		fit := g.Fit(q.ask.Profile)
		changing := false
		if r := report(v, g.Index); r.MIG.Pending != r.MIG.Current {
			changing = true
			q.notes.add("GPU", "about to change MIG mode: it is not re-made", gpuName(v, g.Index))
			o.count(fit.Idle, 0, fit.Idle)
		} else {
			o.count(fit.Idle, 0, max(fit.Idle, fit.Room))
		}
		gpus = append(gpus, g)
		settled = settled && !changing
		if each {
			q.alone(o, i, !changing)
		}
	}
	if !each {
		q.byName(o, gpus, settled && !q.taken.configured[v.Name])
	}
	for _, g := range v.Geometry.Report.GPUs {
		if g.MIG != nil && !g.MIG.Current {
			q.notes.add("GPU", "with MIG off", gpuName(v, g.Index))
		}
	}
}

// distrust marks idle instances that the node does not offer as held by somebody
// unknown: the report and the device plugin disagree about them. It starts with
// GPUs that are held anyway.
func (q *question) distrust(v *view.Node) {
	surplus := map[corev1.ResourceName]int{}
	for _, g := range v.GPUs {
		for _, s := range g.Slots {
			if !s.Held && !g.Sick {
				surplus[corev1.ResourceName(view.MIGPrefix+view.Spelled(s.Profile))]++
			}
		}
	}
	marked := 0
	for name, idle := range surplus {
		free := v.Free(name)
		surplus[name] = idle - max(0, int(free.Value()))
	}
	for _, held := range [...]bool{true, false} {
		for i := range v.GPUs {
			if v.GPUs[i].Held() != held || v.GPUs[i].Sick {
				continue
			}
			for k := range v.GPUs[i].Slots {
				s := &v.GPUs[i].Slots[k]
				if name := corev1.ResourceName(view.MIGPrefix + view.Spelled(s.Profile)); !s.Held && surplus[name] > 0 {
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

func report(v *view.Node, index int) nodeprobe.GPU {
	for _, g := range v.Geometry.Report.GPUs {
		if g.Index == index {
			return g
		}
	}
	return nodeprobe.GPU{}
}

func gpuName(v *view.Node, index int) string { return v.Name + "/GPU " + strconv.Itoa(index) }
