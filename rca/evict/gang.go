package evict

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/view"
)

// maxGang bounds the members that nodes are searched for; larger gangs are told to wait.
const maxGang = 64

// RoomForGang finds the pods to evict so that all of these fit together. Pods that
// ask the same are spread over the nodes at the least cost: per node the cheapest
// evictions for 1, 2, … of them, then the best sum. Different ones come one kind after
// the other. None when it cannot be done; what is found is proved like any other fix.
func (a *Asker) RoomForGang(ctx context.Context, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	if len(pods) > maxGang {
		return nil, nil
	}
	views := maps.Clone(a.Cluster.Nodes)
	var victims []*corev1.Pod
	for len(pods) > 0 {
		shape := view.ShapeOf(pods[0])
		same := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return view.ShapeOf(p) != shape })
		pods = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return view.ShapeOf(p) == shape })
		nodes, err := a.nodesBut(ctx, same[0], views)
		if err != nil {
			return nil, err
		}
		plan := a.spread(nodes, same[0], len(same))
		if plan == nil {
			return nil, nil
		}
		for _, r := range plan {
			for _, v := range r.victims {
				if !slices.Contains(victims, v) {
					victims = append(victims, v)
				}
			}
		}
		settle(views, plan, same)
	}
	return victims, nil
}

// nodesBut are the nodes from which nothing but what is used up keeps the pod, by name,
// without those that somebody has taken.
func (a *Asker) nodesBut(ctx context.Context, p *corev1.Pod, views map[string]*view.Node) ([]*view.Node, error) {
	v, err := a.Cluster.Snapshot.Explain(ctx, p)
	if err != nil {
		return nil, err
	}
	var out []*view.Node
	for _, n := range v.Nodes {
		fits := true
		for _, b := range n.Blockers {
			fits = fits && b.Plugin == "NodeResourcesFit"
		}
		if fits && views[n.Node] != nil && views[n.Node].Taken() == "" {
			out = append(out, views[n.Node])
		}
	}
	return out, nil
}

// landing is where some pods of a gang go: a node, how many of them, and who leaves it first.
type landing struct {
	node    *view.Node
	pods    int
	victims []*corev1.Pod
}

// spread puts that many pods like one on the nodes at the least cost: the best for
// 0, 1, 2, … of them over the nodes so far; nil when they do not fit.
func (a *Asker) spread(nodes []*view.Node, like *corev1.Pod, count int) []landing {
	type best struct {
		ok       bool
		cost     Cost
		landings []landing
	}
	table := make([]best, count+1)
	table[0] = best{ok: true, cost: NoVictims}
	for _, n := range nodes {
		rows := a.rows(n, view.PodRequests(like), count)
		next := slices.Clone(table)
		for have, b := range table {
			for i, row := range rows {
				if !b.ok || have+i+1 > count {
					break
				}
				cost := b.cost.plus(a.CostOf(row))
				if at := &next[have+i+1]; !at.ok || cost.Compare(at.cost) < 0 {
					*at = best{true, cost, append(slices.Clone(b.landings), landing{n, i + 1, row})}
				}
			}
		}
		table = next
	}
	return table[count].landings
}

// rows are the cheapest victims so that 1, 2, … pods fit on a node.
func (a *Asker) rows(n *view.Node, wants corev1.ResourceList, count int) [][]*corev1.Pod {
	var rows [][]*corev1.Pod
	asked := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(0, resource.DecimalSI)}
	for range count {
		view.Add(asked, wants)
		view.Add(asked, corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)})
		lack, ok := n.DeficitsOf(asked)
		if !ok {
			break
		}
		victims, ok := a.Cheapest(n, lack)
		if !ok {
			break
		}
		rows = append(rows, victims)
	}
	return rows
}

// plus is the cost of two sets of pods.
func (a Cost) plus(b Cost) Cost {
	return Cost{a.Beyond + b.Beyond, max(a.Working, b.Working), max(a.Highest, b.Highest), a.Sum + b.Sum, a.Number + b.Number, a.Lost + b.Lost}
}

// settle makes, in copies of the views, the victims leave and the pods come.
func settle(views map[string]*view.Node, plan []landing, pods []*corev1.Pod) {
	edit := func(name string) *view.Node {
		views[name] = views[name].Editable()
		return views[name]
	}
	for _, r := range plan {
		for _, v := range r.victims {
			n := edit(v.Spec.NodeName)
			n.Leaves(v)
		}
		n := edit(r.node.Name)
		for _, p := range pods[:r.pods] {
			n.Comes(p)
		}
		pods = pods[r.pods:]
	}
}
