package gangs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Gang is the group of a waiting pod, when it is one that is scheduled whole and is
// not yet.
type Gang struct {
	of    view.Subject
	Kind  *view.GangKind
	Name  string
	Known bool // its PodGroup was read; without it nothing below is known
	Min   int
	// members exist and have not ended, by name; bound of them have a node, running
	// of them run, the others wait.
	members, waiting []*corev1.Pod
	bound, running   int

	// Fit are the members that have a node or find one on a copy, one after another.
	Fit int
	// exact: however the members are placed, no more fit.
	exact bool
	// placed are the members that find a node on the copy.
	placed []*corev1.Pod
	// stops is what the first member that does not fit lacks, on how many nodes.
	stops   string
	stopped int
	// counted: nothing but what members request, select and tolerate keeps it from nodes.
	counted bool
	// Victims are the pods to evict so that all fit; none when no such set was found.
	Victims []*corev1.Pod
}

// Missing are the members that do not exist, of the least number.
func (g *Gang) Missing() int { return max(0, g.Min-len(g.members)) }

// overdue is how long members may take to be made once others are there: controllers make all
// that they are going to make at once.
const overdue = 20 * time.Minute

// Overdue says whether the members that do not exist are not on their way: the newest of those
// that do has been there for long.
func (g *Gang) Overdue(now time.Time) bool {
	return g.Missing() > 0 && len(g.members) > 0 && !slices.ContainsFunc(g.members, func(p *corev1.Pod) bool {
		return p.CreationTimestamp.IsZero() || now.Sub(p.CreationTimestamp.Time) < overdue
	})
}

// Broken says whether some of its members run and the others cannot join them: who places gangs
// whole has let it be torn.
func (g *Gang) Broken() bool { return g.Known && g.running > 0 && g.Missing() == 0 && g.Fit < g.Min }

// Made are the members that exist.
func (g *Gang) Made() int { return len(g.members) }

// Lacks are the members without a node, of the least number.
func (g *Gang) Lacks() int { return max(0, g.Min-g.bound) }

// Incomplete says whether the gang cannot be scheduled whole as things are.
func (g *Gang) Incomplete() bool { return g != nil && g.Known && (g.Missing() > 0 || g.Fit < g.Min) }

// find reads the group of a waiting pod; nil when it has none, or one that is
// complete or is no gang.
func find(of view.Subject) *Gang {
	w, p := of.Cluster, of.Pod
	k, name := view.Membership(p)
	if name == "" || k.Groups == nil {
		return nil
	}
	g := &Gang{of: of, Kind: k, Name: name}
	for _, o := range k.Groups(w.State) {
		if o.GetNamespace() == p.Namespace && o.GetName() == name {
			least, _, _ := unstructured.NestedFieldNoCopy(o.Object, k.Min...)
			g.Known, g.Min = true, view.AsInt(least)
		}
	}
	if g.Known && g.Min < 2 {
		return nil
	}
	for _, m := range w.State.Pods {
		if m.Namespace != p.Namespace || k.Name(m) != name || view.Ended(m) || m.DeletionTimestamp != nil {
			continue
		}
		g.members = append(g.members, m)
		switch {
		case m.Spec.NodeName == "":
			g.waiting = append(g.waiting, m)
		case m.Status.Phase == corev1.PodRunning:
			g.running++
			fallthrough
		default:
			g.bound++
		}
	}
	if g.Known && g.Lacks() == 0 || of.Unborn && len(g.members) == 0 { // they are made together, or refused one by one
		return nil
	}
	return g
}

// Read finds out how many of the pod's gang fit together, and on its behalf who would have to
// leave so that all do; nil where it has none that is not complete.
func Read(ctx context.Context, of view.Subject, by *evict.Asker) (*Gang, error) {
	g := find(of)
	if g == nil || !g.Known {
		return g, nil
	}
	order := g.Order()
	g.exact = identical(order)
	err := whatif.Try(of.Cluster.Snapshot, func(s *whatif.Snapshot) error {
		g.Fit = g.bound
		for _, m := range order {
			node, err := s.Place(ctx, m)
			if err != nil {
				return err
			}
			if node != "" {
				g.Fit, g.placed = g.Fit+1, append(g.placed, m)
				continue
			}
			if g.stops == "" {
				v, err := s.Explain(ctx, m)
				if err != nil {
					return err
				}
				g.counted = counted(v)
				g.stops, g.stopped = stopper(v)
			}
		}
		return nil
	})
	if err != nil || !g.Incomplete() || g.Missing() > 0 {
		return g, err
	}
	g.Victims, err = by.RoomForGang(ctx, order[:min(len(order), g.Lacks())])
	return g, err
}

// Order lists the members that wait: this one first, then the largest, which are
// the hardest to place.
func (g *Gang) Order() []*corev1.Pod {
	out := slices.Clone(g.waiting)
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int {
		mine := func(p *corev1.Pod) int { return view.Rank(p.Name == g.of.Pod.Name) }
		return cmp.Or(mine(a)-mine(b), cmp.Compare(gpusAsked(b), gpusAsked(a)))
	})
	return out
}

func gpusAsked(p *corev1.Pod) int64 {
	n := int64(0)
	for _, a := range view.AsksOf(p) {
		n += a.Count
	}
	return n
}

// identical says whether pods ask the same of nodes, and nothing of each other: then
// placing them one after another is as good as any other way.
func identical(pods []*corev1.Pod) bool {
	for _, p := range pods {
		a := p.Spec.Affinity
		if view.ShapeOf(p) != view.ShapeOf(pods[0]) || len(p.Spec.TopologySpreadConstraints) > 0 || a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
			return false
		}
	}
	return true
}

// counted says whether all that keeps a pod from nodes can be counted by what it requests, selects
// and tolerates.
func counted(v whatif.Verdict) bool {
	return !slices.ContainsFunc(v.Nodes, func(n whatif.NodeVerdict) bool {
		return slices.ContainsFunc(n.Blockers, func(b whatif.Blocker) bool {
			return !slices.Contains([]string{"NodeResourcesFit", "NodeAffinity", "TaintToleration", "NodeUnschedulable"}, b.Plugin)
		})
	})
}

// stopper is the reason that most nodes give, as the scheduler words it, and how many do.
func stopper(v whatif.Verdict) (reason string, nodes int) {
	count := map[string]int{}
	for _, n := range v.Nodes {
		for _, b := range n.Blockers {
			count[b.Reason]++
		}
	}
	reasons := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) })
	if len(reasons) == 0 {
		return "", 0
	}
	return reasons[0], count[reasons[0]]
}
