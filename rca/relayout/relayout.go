// Package relayout works out which other MIG layouts a node could be given for a request by
// MIG manager, and who would have to leave for each. What MIG manager is told, and that it
// helps, is for rca/changes and rca/fixes to say.
package relayout

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// Way is one way MIG manager could give a node the missing profile.
type Way struct {
	Node    *view.Node
	Config  string                   // what the label is set to
	Entry   json.RawMessage          // of a custom config
	Into    *corev1.ConfigMap        // where the custom entry goes
	Wanted  map[int]placement.Layout // of the GPUs that the config is about; read only
	Now     []placement.Layout       // of the node's GPUs; read only
	Remade  []int                    // GPUs whose counts change: they are cleared whole; read only
	Victims []*corev1.Pod            // who must leave; read only
	Cost    *evict.Cost              // of the victims, where it is known
	Mode    *view.ModeChange         // MIG is switched on
	First   string                   // what is asked for before, see diagnosis.Relayout
}

// Planner works out the ways for one pod.
type Planner struct {
	*evict.Asker
	asks []view.Ask
	// tenants are who could leave for this pod, once asked for.
	tenants *evict.Tenants
}

// New plans for the pod on whose behalf is asked, and all that it asks of GPUs.
func New(a *evict.Asker, asks []view.Ask) *Planner { return &Planner{Asker: a, asks: asks} }

// Ways are those that give a node what is asked and cost least: by another layout of its
// GPUs or, where none does, by switching MIG on. Only those are listed whose victims are
// all known and may leave.
func (c *Planner) Ways(n *view.Node, a view.Ask) []Way {
	if ways := c.relayouts(n, a); len(ways) > 0 {
		return ways
	}
	return c.leastCostly(c.modeChanges(n, a))
}

// relayouts lists what MIG manager could do on a node for the request. Only
// plans whose victims are all known and may leave are listed.
func (c *Planner) relayouts(n *view.Node, a view.Ask) []Way {
	if n.Geometry == nil || len(n.GPUs) == 0 || n.Unreadable || !n.HoldersKnown || n.Geometry.Report.Source != nodeprobe.SourceNVML {
		return nil // where the DRA driver offers the devices, instances are its own to make
	}
	var out []Way
	class, all, held := c.Cluster.ClassOf(n), c.Cluster.NamedLayouts(n), n.HeldOf(a.Resource)
	for i := range all {
		named := &all[i]
		if named.Config == n.Manager().Config || !named.Legal {
			continue // MIG manager acts on a change of the label
		}
		if named.Gives != nil && named.Gives[a.Profile] < a.Count {
			continue // too few, even if every pod leaves
		}
		if r, ok := c.relayout(n, a, held, class.RemakeByName(n, named)); ok {
			r.Config = named.Config
			out = append(out, r)
		}
	}
	if config := c.Cluster.ConfigOf(n); config.Writable {
		out = append(out, c.customRelayouts(n, a, config.Source)...)
		if a.Count > 1 {
			r, ok := c.jointRelayout(n, a, config.Source)
			if same := func(o Way) bool { return o.Config == r.Config }; ok && !slices.ContainsFunc(out, same) { // one GPU may do
				out = append(out, r)
			}
		}
	}
	return c.leastCostly(out)
}

// Roomiest is the GPU among those that are re-made which has unheld now what somebody
// asks for, the first of them where none has.
func (r Way) Roomiest(asks []view.Ask) int {
	for _, g := range r.Node.GPUs {
		for _, a := range asks {
			if a.Profile != "" && slices.Contains(r.Remade, g.Index) && g.Fit(a.Profile).Room > 0 && r.Wanted[g.Index][a.Profile] > 0 {
				return g.Index
			}
		}
	}
	return r.Remade[0]
}

// leastCostly keeps the relayouts that cost least: whatever else keeps the pod
// from the node is the same for all of them.
func (c *Planner) leastCostly(all []Way) []Way {
	best := 0
	costs := make([]evict.Cost, len(all))
	for i := range all {
		if all[i].Cost == nil {
			cost := c.CostOf(all[i].Victims)
			all[i].Cost = &cost
		}
		costs[i] = *all[i].Cost
		if costs[i].Compare(costs[best]) < 0 {
			best = i
		}
	}
	var out []Way
	for i, r := range all {
		if costs[i].Compare(costs[best]) == 0 {
			out = append(out, r)
		}
	}
	return out
}

// customRelayouts re-makes one GPU and repeats the counts of the others.
func (c *Planner) customRelayouts(n *view.Node, a view.Ask, into *corev1.ConfigMap) []Way {
	free := n.Free(a.Resource)
	var out []Way
	for _, g := range n.GPUs {
		need := int(a.Count) - max(0, int(free.Value())-g.Fit(a.Profile).Idle)
		options := g.Relayouts(a.Profile, max(1, need))
		if len(options) == 0 {
			continue
		}
		layouts := map[int]placement.Layout{}
		for i, other := range n.GPUs {
			layouts[other.Index] = c.Cluster.ClassOf(n).Layouts[i]
		}
		layouts[g.Index] = options[0]
		if r, ok := c.customRelayout(n, a, layouts, into); ok {
			out = append(out, r)
		}
	}
	return out
}

// customRelayout is the layouts as an entry of their own, named by its content.
func (c *Planner) customRelayout(n *view.Node, a view.Ask, layouts map[int]placement.Layout, into *corev1.ConfigMap) (Way, bool) {
	r, ok := c.relayout(n, a, n.HeldOf(a.Resource), c.Cluster.ClassOf(n).RemakeBy(n, layouts))
	if !ok {
		return r, false
	}
	entry, err := view.CustomEntry(layouts)
	if err != nil {
		return r, false
	}
	r.Entry, r.Into = entry, into
	r.Config = fmt.Sprintf("unpend-%.4x", sha256.Sum256(append([]byte(n.Name+"\n"), entry...)))
	return r, true
}

// jointRelayout re-makes as many GPUs of the node as the request needs, those
// whose holders cost least together.
func (c *Planner) jointRelayout(n *view.Node, a view.Ask, into *corev1.ConfigMap) (Way, bool) {
	if c.tenants == nil {
		c.tenants = evict.NewTenants(c.Asker)
	}
	holders := c.tenants.Renumbered()
	places := make([][]placement.Option, len(n.GPUs))
	for i, g := range n.GPUs {
		places[i] = slices.DeleteFunc(g.Options(a.Profile, placement.WholeGPU, holders.Holding), func(o placement.Option) bool { return !o.Remade && len(o.Leave) > 0 })
	}
	planner := placement.NewPlanner(placement.Problem{Tenants: holders.List, Budgets: c.Cluster.Budgets.Allowed(), Places: places})
	plan := planner.Plan(int(a.Count))
	if int64(plan.Fits) < a.Count {
		return Way{}, false
	}
	need := int(a.Count)
	layouts, remade := map[int]placement.Layout{}, map[int]int{}
	for _, m := range plan.Moves {
		if o := places[m.Place][m.Option]; o.Remade {
			remade[m.Place] = o.Fits
		}
	}
	for i, g := range n.GPUs {
		layouts[g.Index] = c.Cluster.ClassOf(n).Layouts[i]
		if _, ok := remade[i]; !ok {
			need -= g.Fit(a.Profile).Idle
		}
	}
	for _, i := range slices.Sorted(maps.Keys(remade)) {
		count := min(remade[i], max(1, need))
		options := n.GPUs[i].Relayouts(a.Profile, count)
		if len(options) == 0 {
			return Way{}, false
		}
		layouts[n.GPUs[i].Index] = options[0]
		need -= count
	}
	return c.customRelayout(n, a, layouts, into)
}

// relayout works out who must leave for what is re-made, which has legal positions, and
// whether the request fits afterwards; held is how many of what is asked pods hold now.
func (c *Planner) relayout(n *view.Node, a view.Ask, held int64, how view.Remake) (Way, bool) {
	left := how.Made[a.Profile]
	if left < a.Count || len(c.asks) > 1 && !how.MakesAll(c.asks) {
		return Way{}, false // too few, even if every pod leaves
	}
	r, ok := c.Remakes(n, how)
	if !ok {
		return r, false
	}
	for _, p := range r.Victims {
		q := n.Requests[p][a.Resource]
		left += q.Value()
	}
	return r, left >= a.Count+held
}

// Remakes works out who must leave for what is re-made; false when nothing is, when a sick
// GPU would be, when somebody may not leave, or when nobody can tell who is there.
func (c *Planner) Remakes(n *view.Node, how view.Remake) (Way, bool) {
	r := Way{Node: n, Wanted: how.Layouts, Now: c.Cluster.ClassOf(n).Layouts, Remade: how.Indices}
	if len(how.GPUs) == 0 || how.Sick {
		return r, false
	}
	l := c.Leaving(n, how.GPUs)
	if l.Unknown || !c.LetsAll(l.Traits) {
		return r, false
	}
	r.Victims, r.Cost = l.Pods, &l.Cost
	return r, true
}

// Layouts are those of all the node's GPUs afterwards.
func (r Way) Layouts() map[int]placement.Layout {
	if r.Mode != nil {
		return r.Mode.Layouts
	}
	out := make(map[int]placement.Layout, len(r.Node.GPUs))
	for i, g := range r.Node.GPUs {
		out[g.Index] = r.Now[i]
		if want, ok := r.Wanted[g.Index]; ok {
			out[g.Index] = want
		}
	}
	return out
}

// After is what the node advertises of MIG devices with the new layouts, without those of
// sick GPUs: keys of a former layout stay, at 0.
func (r Way) After(n *view.Node) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), view.MIGPrefix) {
			out[name] = resource.Quantity{}
		}
	}
	for index, layout := range r.Layouts() {
		if slices.ContainsFunc(r.Node.GPUs, func(g placement.GPU) bool { return g.Sick && g.Index == index }) {
			continue
		}
		for profile, count := range layout {
			name := corev1.ResourceName(view.MIGPrefix + view.Spelled(profile))
			q := out[name]
			q.Add(*resource.NewQuantity(int64(count), resource.DecimalSI))
			out[name] = q
		}
	}
	if r.Mode != nil {
		out[view.WholeGPU] = *resource.NewQuantity(int64(r.Mode.Whole), resource.DecimalSI)
	}
	return out
}

// HardwareEvictions is the least number of pods that would have to leave the
// node if single instances could be re-made.
func (c *Planner) HardwareEvictions(n *view.Node, a view.Ask) *int {
	var best *int
	for _, g := range n.GPUs {
		e, ok := g.Cheapest(a.Profile, int(a.Count), func(s placement.Slot) (int64, bool) {
			p := c.Cluster.State.Pod(s.Holder.Namespace, s.Holder.Pod)
			return 1, !s.Unknown && p != nil && c.MayLeave(p)
		})
		if !ok {
			continue
		}
		count := len(e.Slots)
		if best != nil {
			count = min(count, *best)
		}
		best = &count
	}
	return best
}
