package rca

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// relayout is one way MIG manager could give a node the missing profile.
type relayout struct {
	node    *nodeView
	config  string
	entry   json.RawMessage          // of a custom config
	into    *corev1.ConfigMap        // where the custom entry goes
	wanted  map[int]placement.Layout // of the GPUs that the config is about; read only
	now     []placement.Layout       // of the node's GPUs; read only
	remade  []int                    // GPUs whose counts change: they are cleared whole; read only
	victims []*corev1.Pod
	cost    *victimCost // of the victims, where it is known
	mode    *modeChange // MIG is switched on
	first   string      // what is asked for before, see Relayout.First
}

// relayouts lists what MIG manager could do on a node for the request. Only
// plans whose victims are all known and may leave are listed.
func (c *Bench) relayouts(n *nodeView, a ask) []relayout {
	if n.geometry == nil || len(n.gpus) == 0 || n.unreadable || !n.holdersKnown || n.geometry.Report.Source != nodeprobe.SourceNVML {
		return nil // where the DRA driver offers the devices, instances are its own to make
	}
	var out []relayout
	class, all, held := c.world.classOf(n), c.world.namedLayouts(n), n.heldOf(a.resource)
	for i := range all {
		named := &all[i]
		if named.config == n.manager().config || !named.legal {
			continue // MIG manager acts on a change of the label
		}
		if named.gives != nil && named.gives[a.profile] < a.count {
			continue // whoever leaves
		}
		if r, ok := c.relayout(n, a, held, class.remakeByName(n, named)); ok {
			r.config = named.config
			out = append(out, r)
		}
	}
	if config := c.world.configOf(n); config.writable {
		out = append(out, c.customRelayouts(n, a, config.source)...)
		if r, ok := c.jointRelayout(n, a, config.source); ok && a.count > 1 {
			out = append(out, r)
		}
	}
	return c.leastCostly(out)
}

// roomiest is the GPU among those that are re-made which has unheld now what somebody
// asks for, the first of them where none has.
func (r relayout) roomiest(asks []ask) int {
	for _, g := range r.node.gpus {
		for _, a := range asks {
			if a.profile != "" && slices.Contains(r.remade, g.Index) && g.Fit(a.profile).Room > 0 && r.wanted[g.Index][a.profile] > 0 {
				return g.Index
			}
		}
	}
	return r.remade[0]
}

// leastCostly keeps the relayouts that cost least: whatever else keeps the pod
// from the node is the same for all of them.
func (c *Bench) leastCostly(all []relayout) []relayout {
	best := 0
	costs := make([]victimCost, len(all))
	for i := range all {
		if all[i].cost == nil {
			cost := c.costOf(all[i].victims)
			all[i].cost = &cost
		}
		costs[i] = *all[i].cost
		if costs[i].compare(costs[best]) < 0 {
			best = i
		}
	}
	var out []relayout
	for i, r := range all {
		if costs[i].compare(costs[best]) == 0 {
			out = append(out, r)
		}
	}
	return out
}

// customRelayouts re-makes one GPU and repeats the counts of the others.
func (c *Bench) customRelayouts(n *nodeView, a ask, into *corev1.ConfigMap) []relayout {
	free := n.free(a.resource)
	var out []relayout
	for _, g := range n.gpus {
		need := int(a.count) - max(0, int(free.Value())-g.Fit(a.profile).Idle)
		options := g.Relayouts(a.profile, max(1, need))
		if len(options) == 0 {
			continue
		}
		layouts := map[int]placement.Layout{}
		for i, other := range n.gpus {
			layouts[other.Index] = c.world.classOf(n).layouts[i]
		}
		layouts[g.Index] = options[0]
		if r, ok := c.customRelayout(n, a, layouts, into); ok {
			out = append(out, r)
		}
	}
	return out
}

// customRelayout is the layouts as an entry of their own, named by its content.
func (c *Bench) customRelayout(n *nodeView, a ask, layouts map[int]placement.Layout, into *corev1.ConfigMap) (relayout, bool) {
	r, ok := c.relayout(n, a, n.heldOf(a.resource), c.world.classOf(n).remakeBy(n, layouts))
	if !ok {
		return r, false
	}
	entry, err := customEntry(layouts)
	if err != nil {
		return r, false
	}
	r.entry, r.into = entry, into
	r.config = fmt.Sprintf("unpend-%.4x", sha256.Sum256(append([]byte(n.Name+"\n"), entry...)))
	return r, true
}

// jointRelayout re-makes as many GPUs of the node as the request needs, those
// whose holders cost least together.
func (c *Bench) jointRelayout(n *nodeView, a ask, into *corev1.ConfigMap) (relayout, bool) {
	if c.tenants == nil {
		c.tenants = newTenants(c.Asker)
	}
	holders := c.tenants.anew()
	places := make([][]placement.Option, len(n.gpus))
	for i, g := range n.gpus {
		places[i] = slices.DeleteFunc(g.Options(a.profile, placement.WholeGPU, holders.holding), func(o placement.Option) bool { return !o.Remade && len(o.Leave) > 0 })
	}
	planner := placement.NewPlanner(placement.Problem{Tenants: holders.list, Budgets: c.world.pdbs.allowed(), Places: places})
	plan := planner.Plan(int(a.count))
	if int64(plan.Fits) < a.count {
		return relayout{}, false
	}
	need := int(a.count)
	layouts, remade := map[int]placement.Layout{}, map[int]int{}
	for _, m := range plan.Moves {
		if o := places[m.Place][m.Option]; o.Remade {
			remade[m.Place] = o.Fits
		}
	}
	for i, g := range n.gpus {
		layouts[g.Index] = c.world.classOf(n).layouts[i]
		if _, ok := remade[i]; !ok {
			need -= g.Fit(a.profile).Idle
		}
	}
	for _, i := range slices.Sorted(maps.Keys(remade)) {
		count := min(remade[i], max(1, need))
		options := n.gpus[i].Relayouts(a.profile, count)
		if len(options) == 0 {
			return relayout{}, false
		}
		layouts[n.gpus[i].Index] = options[0]
		need -= count
	}
	return c.customRelayout(n, a, layouts, into)
}

// relayout works out who must leave for what is re-made, which has legal positions, and
// whether the request fits afterwards; held is how many of what is asked pods hold now.
func (c *Bench) relayout(n *nodeView, a ask, held int64, how remake) (relayout, bool) {
	left := how.made[a.profile]
	if left < a.count || len(c.asks) > 1 && !how.makesAll(c.asks) {
		return relayout{}, false // whoever leaves
	}
	r, ok := c.remakes(n, how)
	if !ok {
		return r, false
	}
	for _, p := range r.victims {
		q := n.requests[p][a.resource]
		left += q.Value()
	}
	return r, left >= a.count+held
}

// makesAll says whether the layouts have as many as are asked of each profile.
func (r remake) makesAll(asks []ask) bool {
	return !slices.ContainsFunc(asks, func(a ask) bool { return a.profile != "" && r.made[a.profile] < a.count })
}

// remakes works out who must leave for what is re-made; false when nothing is, when
// somebody may not leave, or when nobody can tell who is there.
func (c *Bench) remakes(n *nodeView, how remake) (relayout, bool) {
	r := relayout{node: n, wanted: how.layouts, now: c.world.classOf(n).layouts, remade: how.indices}
	if len(how.gpus) == 0 {
		return r, false
	}
	l := c.leaving(n, how.gpus)
	if l.unknown || !c.letsAll(l.traits) {
		return r, false
	}
	r.victims, r.cost = l.pods, &l.cost
	return r, true
}

// layouts are those of all the node's GPUs afterwards.
func (r relayout) layouts() map[int]placement.Layout {
	if r.mode != nil {
		return r.mode.layouts
	}
	out := make(map[int]placement.Layout, len(r.node.gpus))
	for i, g := range r.node.gpus {
		out[g.Index] = r.now[i]
		if want, ok := r.wanted[g.Index]; ok {
			out[g.Index] = want
		}
	}
	return out
}

// tenancy is who has to leave a GPU for it to be re-made, gangs as a whole; unknown:
// nobody can tell.
type tenancy struct {
	pods    []*corev1.Pod
	traits  []traits // of each of them
	unknown bool
}

// heldOf is how many of a resource the node's pods hold.
func (n *nodeView) heldOf(name corev1.ResourceName) int64 {
	if q := n.requested[name]; q.IsZero() {
		return 0
	}
	held := int64(0)
	for _, p := range n.pods {
		q := n.requests[p][name]
		held += q.Value()
	}
	return held
}

// tenancies are those of the node's GPUs.
func (w *world) tenancies(n *nodeView) []tenancy {
	if n.tenants != nil {
		return n.tenants
	}
	n.tenants = make([]tenancy, len(n.gpus))
	for i, g := range n.gpus {
		t := &n.tenants[i]
		for _, s := range g.Slots {
			if !s.Held {
				continue
			}
			p := w.state.Pod(s.Holder.Namespace, s.Holder.Pod)
			if t.unknown = t.unknown || s.Unknown || p == nil; t.unknown {
				break
			}
			if own := w.traitsOf(p); own.gang == "" {
				t.pods, t.traits = append(t.pods, p), append(t.traits, own)
				continue
			}
			for _, p := range w.together(p) {
				t.pods, t.traits = append(t.pods, p), append(t.traits, w.traitsOf(p))
			}
		}
	}
	return n.tenants
}

// after is what the node advertises of MIG devices with the new layouts: keys of
// a former layout stay, at 0.
func (r relayout) after(n *nodeView) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name := range n.Status.Allocatable {
		if len(name) > len(migPrefix) && string(name[:len(migPrefix)]) == migPrefix {
			out[name] = resource.Quantity{}
		}
	}
	for _, layout := range r.layouts() {
		for profile, count := range layout {
			name := corev1.ResourceName(migPrefix + spelled(profile))
			q := out[name]
			q.Add(*resource.NewQuantity(int64(count), resource.DecimalSI))
			out[name] = q
		}
	}
	if r.mode != nil {
		out[wholeGPU] = *resource.NewQuantity(int64(r.mode.whole), resource.DecimalSI)
	}
	return out
}

// hardwareEvictions is the least number of pods that would have to leave the
// node if single instances could be re-made.
func (c *Bench) hardwareEvictions(n *nodeView, a ask) *int {
	var best *int
	for _, g := range n.gpus {
		e, ok := g.Cheapest(a.profile, int(a.count), func(s placement.Slot) (int64, bool) {
			p := c.world.state.Pod(s.Holder.Namespace, s.Holder.Pod)
			return 1, !s.Unknown && p != nil && c.mayLeave(p)
		})
		if ok && (best == nil || len(e.Slots) < *best) {
			count := len(e.Slots)
			best = &count
		}
	}
	return best
}
