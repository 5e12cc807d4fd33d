package capacity

import (
	"cmp"
	"slices"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// each says whether MIG manager can be given an entry of our own, which re-makes one GPU
// of a node and leaves the others as they are.
func (q *question) each(v *view.Node) bool { return managed(v) && q.world.ConfigOf(v).Writable }

// managed says whether MIG manager re-makes the node's GPUs: where the DRA driver offers
// them instances are its own to make.
func managed(v *view.Node) bool {
	return v.Geometry.Report.Source == nodeprobe.SourceNVML
}

// alone counts what one GPU gives whatever becomes of the others. One that is re-made anyway,
// for an ask before this, takes what has room beside that.
func (q *question) alone(o *offer, gpu int, remade bool) {
	g, how := o.node.GPUs[gpu], placement.WholeGPU
	if open := q.taken.open[chip{o.node.Name, g.Index}]; open {
		how = placement.Single
	}
	options := g.Options(q.ask.Profile, how, q.tenants.Holding)
	fit := g.Fit(q.ask.Profile)
	switch {
	case !remade:
		options = slices.DeleteFunc(options, func(p placement.Option) bool { return p.Remade })
		o.count(0, fit.Idle, 0)
	case g.Held() && how == placement.WholeGPU:
		o.count(0, fit.Idle, 0)
	default:
		o.count(0, max(fit.Idle, fit.Room), 0)
	}
	o.place(gpu, options)
}

// byName counts what a node gives where MIG manager has the entries of its config alone:
// each re-makes all GPUs whose counts it changes, so the node is one place. Nothing is
// re-made unless all its GPUs are settled.
func (q *question) byName(o *offer, gpus []placement.GPU, settled bool) {
	v, idle := o.node, 0
	for _, g := range gpus {
		idle += g.Fit(q.ask.Profile).Idle
	}
	ways := []placement.Option{{Fits: idle}}
	if managed(v) && settled {
		for _, named := range q.world.NamedLayouts(v) {
			if named.Config == v.Manager().Config || !named.Legal {
				continue // MIG manager acts on a change of the label
			}
			if way, ok := placement.Reconfigure(v.GPUs, named.Layouts, q.ask.Profile, q.tenants.Holding); ok && way.Remade {
				ways = append(ways, way)
			}
		}
	}
	most := idle
	var options []placement.Option
	for _, way := range ways {
		if len(way.Leave) == 0 {
			most = max(most, way.Fits)
		}
		options = append(options, q.emptied(v, way)...)
	}
	o.count(0, most, 0)
	if len(ways) == 1 { // no entry helps: each GPU is a place of its own, exactly
		for _, g := range gpus {
			options := g.Options(q.ask.Profile, placement.WholeGPU, q.tenants.Holding)
			o.place(at(v, g), slices.DeleteFunc(options, func(p placement.Option) bool { return p.Remade }))
		}
		return
	}
	o.place(wholeNode, undominated(options))
}

// at is where a GPU stands among those of its node.
func at(v *view.Node, g placement.GPU) int {
	return slices.IndexFunc(v.GPUs, func(o placement.GPU) bool { return o.Index == g.Index })
}

// emptied are a way, and the same with more and more of those gone, the cheapest first, who
// hold what was asked on GPUs that it leaves alone.
func (q *question) emptied(v *view.Node, way placement.Option) []placement.Option {
	out := []placement.Option{way}
	gives := map[int]int{}
	for _, g := range v.GPUs {
		if way.Remade && slices.ContainsFunc(g.Slots, func(s placement.Slot) bool { return s.Held && slices.Contains(way.Leave, q.tenants.Holding(s)) }) {
			continue // it is re-made
		}
		for _, s := range g.Slots {
			if t := q.tenantOf(g, s); t >= 0 && !slices.Contains(way.Leave, t) {
				gives[t]++
			}
		}
	}
	tenants := make([]int, 0, len(gives))
	for t := range gives {
		tenants = append(tenants, t)
	}
	slices.SortFunc(tenants, func(a, b int) int {
		x, y := q.tenants.List[a], q.tenants.List[b]
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), gives[b]-gives[a], cmp.Compare(x.Lost, y.Lost), a-b)
	})
	for _, t := range tenants {
		last := out[len(out)-1]
		next := placement.Option{Fits: last.Fits + gives[t], Remade: way.Remade, Leave: append(slices.Clone(last.Leave), t)}
		slices.Sort(next.Leave)
		out = append(out, next)
	}
	return out
}

// tenantOf is who holds an instance of what was asked; negative for nobody who could leave.
func (q *question) tenantOf(g placement.GPU, s placement.Slot) int {
	if !s.Held || g.Sick || view.Spelled(s.Profile) != q.ask.Profile {
		return -1
	}
	return q.tenants.Holding(s)
}

// undominated leaves out the options for which no fewer leave than for another that gives
// as much.
func undominated(options []placement.Option) []placement.Option {
	var out []placement.Option
	for i, o := range options {
		worse := slices.ContainsFunc(options[:i], func(p placement.Option) bool { return p.Fits >= o.Fits && within(p.Leave, o.Leave) }) ||
			slices.ContainsFunc(options[i+1:], func(p placement.Option) bool {
				return p.Fits >= o.Fits && within(p.Leave, o.Leave) && (p.Fits > o.Fits || len(p.Leave) < len(o.Leave))
			})
		if o.Fits > 0 && !worse {
			out = append(out, o)
		}
	}
	return out
}

func within(some, all []int) bool {
	return !slices.ContainsFunc(some, func(t int) bool { return !slices.Contains(all, t) })
}
