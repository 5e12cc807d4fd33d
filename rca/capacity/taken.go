package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// chip is a GPU of a node, by its index.
type chip struct {
	node  string
	index int
}

// taken is what asks have, once each has what it asked for: what the next finds.
type taken struct {
	gone       map[*corev1.Pod]bool
	slots      map[chip][]placement.Slot // of GPUs on which somebody of them is, or that are re-made
	open       map[chip]bool             // re-made each by itself: its layout is still to be written
	configured map[string]bool           // nodes that an entry of the operator's re-makes
	guests     map[string]int            // by node
	budgets    map[int]int               // by budget: of its pods, who leave
}

func newTaken() *taken {
	return &taken{gone: map[*corev1.Pod]bool{}, slots: map[chip][]placement.Slot{}, open: map[chip]bool{}, configured: map[string]bool{}, guests: map[string]int{}, budgets: map[int]int{}}
}

func (t *taken) clone() *taken {
	return &taken{maps.Clone(t.gone), maps.Clone(t.slots), maps.Clone(t.open), maps.Clone(t.configured), maps.Clone(t.guests), maps.Clone(t.budgets)}
}

// left is what budgets still allow.
func (t *taken) left(allowed []int) []int {
	for b, n := range t.budgets {
		allowed[b] = max(0, allowed[b]-n)
	}
	return allowed
}

// show marks what is taken on the GPUs of a node, and gives back what those had who are gone.
func (q *question) show(v *view.Node) {
	for i := range v.GPUs {
		g := &v.GPUs[i]
		if s, ok := q.taken.slots[chip{v.Name, g.Index}]; ok {
			g.Slots = slices.Clone(s)
		}
		for k := range g.Slots {
			s := &g.Slots[k]
			if s.Held && !s.Unknown && q.taken.gone[q.world.State.Pod(s.Holder.Namespace, s.Holder.Pod)] {
				s.Held = false
			}
		}
	}
}

// room is how many guests a node takes, beside those that are there for other asks and
// without those who are gone for them.
func (q *question) room(v *view.Node, leave []*corev1.Pod) int {
	for p := range q.taken.gone {
		if p.Spec.NodeName == v.Name {
			leave = append(slices.Clip(leave), p)
		}
	}
	return q.host.room(v, leave, q.taken.guests[v.Name])
}

// take notes what the ask has by a plan: first on what is re-made or left for it, then what is
// idle, on GPUs that somebody holds before others, which can be re-made for the next.
func (q *question) take(plan placement.Plan) {
	for _, t := range plan.Leave {
		for _, p := range q.tenants.Pods[t] {
			q.taken.gone[p] = true
		}
		for _, g := range q.tenants.List[t].Guards {
			q.taken.budgets[g.Budget] += g.Pods
		}
	}
	for _, v := range q.world.SortedNodes() {
		q.show(v)
	}
	need, moved := plan.Fits, map[int]bool{}
	for _, m := range plan.Moves {
		moved[m.Place] = true
		need -= q.settle(q.places[m.Place], q.options[m.Place][m.Option], need)
	}
	for _, held := range [...]bool{true, false} {
		for i, p := range q.places {
			if moved[i] || (p.gpu >= 0 && p.node.GPUs[p.gpu].Held()) != held {
				continue
			}
			for _, o := range q.options[i] {
				if !o.Remade && len(o.Leave) == 0 {
					need -= q.settle(p, o, need)
					moved[i] = true
					break
				}
			}
		}
	}
}

// settle puts as many guests as are needed where an option has room; it returns how many.
func (q *question) settle(p place, o placement.Option, need int) int {
	n := min(need, o.Fits)
	if n <= 0 {
		return 0
	}
	q.taken.guests[p.node.Name] += n
	gpus := p.node.GPUs
	switch {
	case p.gpu >= 0 && o.Remade:
		q.remake(p, n)
		return n
	case p.gpu >= 0:
		gpus = gpus[p.gpu : p.gpu+1]
	case o.Remade:
		q.configure(p.node, o)
	}
	for i, rest := 0, n; i < len(gpus); i++ {
		rest -= q.hold(p.node, &gpus[i], rest)
	}
	return n
}

// hold marks up to n idle instances of what is asked on a GPU as a guest's.
func (q *question) hold(v *view.Node, g *placement.GPU, n int) int {
	held := 0
	for k := range g.Slots {
		if s := &g.Slots[k]; held < n && !g.Sick && !s.Held && view.Spelled(s.Profile) == q.ask.Profile {
			s.Held, s.Unknown = true, true
			held++
		}
	}
	if held > 0 {
		q.taken.slots[chip{v.Name, g.Index}] = slices.Clone(g.Slots)
	}
	return held
}

// remake lays a GPU out for n guests beside those who are on it: who is on one that is re-made
// are guests themselves, so only their number counts, and not where they were put before.
func (q *question) remake(p place, n int) {
	g := &p.node.GPUs[p.gpu]
	layout := placement.Layout{}
	for _, s := range g.Slots {
		if s.Held {
			layout[s.Profile]++
		}
	}
	mine, _ := g.Grid.Profile(q.ask.Profile)
	layout[mine.Name] += n
	placed, ok := g.Grid.Place(layout)
	if !ok {
		return // Options has said that it can be
	}
	for k := range placed {
		placed[k].Held, placed[k].Unknown = true, true
	}
	key := chip{p.node.Name, g.Index}
	g.Slots, q.taken.slots[key], q.taken.open[key] = placed, slices.Clone(placed), true
}

// configure lays a node out by the entry of MIG manager's that an option stands for.
func (q *question) configure(v *view.Node, o placement.Option) {
	q.taken.configured[v.Name] = true
	for _, named := range q.world.NamedLayouts(v) {
		if named.Config == v.Manager().Config || !named.Legal {
			continue
		}
		way, ok := placement.Reconfigure(v.GPUs, named.Layouts, q.ask.Profile, func(placement.Slot) int { return -1 })
		if !ok || !way.Remade || way.Fits < o.Fits {
			continue
		}
		for i := range v.GPUs {
			g := &v.GPUs[i]
			if layout, ok := named.Layouts[g.Index]; ok && !maps.Equal(layout, g.Layout()) {
				g.Slots, _ = g.Grid.Place(layout)
				q.taken.slots[chip{v.Name, g.Index}] = slices.Clone(g.Slots)
			}
		}
		return
	}
}
