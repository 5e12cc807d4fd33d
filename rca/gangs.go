package rca

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/whatif"
)

// gangKind is one way in which a pod names the group that it is scheduled with, all
// or none.
type gangKind struct {
	name func(*corev1.Pod) string
	// groups are the objects that say how many pods make a gang; nil where none is
	// read (Kueue's plain pod groups, LeaderWorkerSet, Koordinator).
	groups func(*cluster.State) []*unstructured.Unstructured
	api    string
	min    []string // the field of the least number
}

// gangKinds, in the order in which they are asked: a pod that several schedulers
// could read is the group's that its own fields name.
var gangKinds = []*gangKind{
	{name: schedulingGroup, groups: func(s *cluster.State) []*unstructured.Unstructured { return s.PodGroups.Kubernetes }, api: "scheduling.k8s.io", min: []string{"spec", "schedulingPolicy", "gang", "minCount"}},
	pluginsGang("scheduling.x-k8s.io/pod-group"), pluginsGang("pod-group.scheduling.sigs.k8s.io"), // the former key
	{name: label("kueue.x-k8s.io/pod-group-name")},
	{name: label("leaderworkerset.sigs.k8s.io/group-key")},
	volcanoGang("scheduling.k8s.io/group-name"), volcanoGang("scheduling.volcano.sh/group-name"),
	{name: annotation("pod-group-name"), groups: func(s *cluster.State) []*unstructured.Unstructured { return s.PodGroups.KAI }, api: "scheduling.run.ai", min: minMember},
	{name: annotation("gang.scheduling.koordinator.sh/name")},
}

var minMember = []string{"spec", "minMember"}

func pluginsGang(key string) *gangKind {
	return &gangKind{name: label(key), groups: func(s *cluster.State) []*unstructured.Unstructured { return s.PodGroups.Plugins }, api: "scheduling.x-k8s.io", min: minMember}
}

func volcanoGang(key string) *gangKind {
	return &gangKind{name: annotation(key), groups: func(s *cluster.State) []*unstructured.Unstructured { return s.PodGroups.Volcano }, api: "scheduling.volcano.sh", min: minMember}
}

func schedulingGroup(p *corev1.Pod) string {
	if g := p.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

func label(key string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string { return p.Labels[key] }
}

func annotation(key string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string { return p.Annotations[key] }
}

// membership is the name of a pod's group and in whose terms it is; empty for a pod
// that stands alone.
func membership(p *corev1.Pod) (*gangKind, string) {
	for _, k := range gangKinds {
		if name := k.name(p); name != "" {
			return k, name
		}
	}
	return nil, ""
}

// gangOf names the group of a pod with its namespace; empty for one that stands alone.
func gangOf(p *corev1.Pod) string {
	if _, name := membership(p); name != "" {
		return p.Namespace + "/" + name
	}
	return ""
}

// gang is the group of a waiting pod, when it is one that is scheduled whole and is
// not yet.
type gang struct {
	kind  *gangKind
	name  string
	known bool // its PodGroup was read; without it nothing below is known
	min   int
	// members exist and have not ended, by name; bound of them have a node, running
	// of them run, the others wait.
	members, waiting []*corev1.Pod
	bound, running   int

	// fit are the members that have a node or find one on a copy, one after another.
	fit int
	// exact: however the members are placed, no more fit.
	exact bool
	// stops is what the first member that does not fit lacks, on how many nodes.
	stops string
	// victims are whom to evict so that all fit; none when nobody was found.
	victims []*corev1.Pod
}

// missing are the members that do not exist, of the least number.
func (g *gang) missing() int { return max(0, g.min-len(g.members)) }

// lacks are the members without a node, of the least number.
func (g *gang) lacks() int { return max(0, g.min-g.bound) }

// short says whether the gang cannot be scheduled whole as things are.
func (g *gang) short() bool { return g != nil && g.known && (g.missing() > 0 || g.fit < g.min) }

// gangFor reads the group of a waiting pod; nil when it has none, or one that is
// complete or is no gang.
func (w *world) gangFor(p *corev1.Pod) *gang {
	k, name := membership(p)
	if name == "" || k.groups == nil {
		return nil
	}
	g := &gang{kind: k, name: name}
	for _, o := range k.groups(w.state) {
		if o.GetNamespace() == p.Namespace && o.GetName() == name {
			least, _, _ := unstructured.NestedFieldNoCopy(o.Object, k.min...)
			g.known, g.min = true, asInt(least)
		}
	}
	if g.known && g.min < 2 {
		return nil
	}
	for _, m := range w.state.Pods {
		if m.Namespace != p.Namespace || k.name(m) != name || ended(m) || m.DeletionTimestamp != nil {
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
	if g.known && g.lacks() == 0 {
		return nil
	}
	return g
}

// asInt reads a number as JSON decoders give it.
func asInt(v any) int {
	switch n := v.(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

// readGang finds out how many of the pod's gang fit together.
func (c *Case) readGang(ctx context.Context) error {
	c.gang = c.world.gangFor(c.Pod)
	g := c.gang
	if g == nil || !g.known {
		return nil
	}
	order := c.gangOrder()
	g.exact = identical(order)
	err := whatif.Try(c.world.snap, func(s *whatif.Snapshot) error {
		g.fit = g.bound
		for _, m := range order {
			node, err := s.Place(ctx, m)
			if err != nil {
				return err
			}
			if node != "" {
				g.fit++
				continue
			}
			if g.stops == "" {
				v, err := s.Explain(ctx, m)
				if err != nil {
					return err
				}
				g.stops = stopper(v)
			}
		}
		return nil
	})
	if err != nil || !g.short() || g.missing() > 0 {
		return err
	}
	g.victims, err = c.roomForGang(ctx, order[:min(len(order), g.lacks())])
	return err
}

// gangOrder lists the members that wait: this one first, then the largest, which are
// the hardest to place.
func (c *Case) gangOrder() []*corev1.Pod {
	out := slices.Clone(c.gang.waiting)
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int {
		mine := func(p *corev1.Pod) int { return rank(p.Namespace == c.Pod.Namespace && p.Name == c.Pod.Name) }
		return cmp.Or(mine(a)-mine(b), cmp.Compare(gpusAsked(b), gpusAsked(a)))
	})
	return out
}

func gpusAsked(p *corev1.Pod) int64 {
	n := int64(0)
	for _, a := range asksOf(p) {
		n += a.count
	}
	return n
}

// identical says whether pods ask the same of nodes, and nothing of each other: then
// placing them one after another is as good as any other way.
func identical(pods []*corev1.Pod) bool {
	for _, p := range pods {
		a := p.Spec.Affinity
		if shapeOf(p) != shapeOf(pods[0]) || len(p.Spec.TopologySpreadConstraints) > 0 || a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
			return false
		}
	}
	return true
}

// shapeOf is what a pod asks of nodes, comparable.
func shapeOf(p *corev1.Pod) string {
	wants := podRequests(p)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		q := wants[name]
		parts = append(parts, string(name)+"="+q.String())
	}
	var affinity *corev1.NodeAffinity
	if p.Spec.Affinity != nil {
		affinity = p.Spec.Affinity.NodeAffinity
	}
	return strings.Join(parts, ",") + string(mustJSON([]any{p.Spec.NodeSelector, affinity, p.Spec.Tolerations, p.Spec.ResourceClaims}))
}

// stopper is the reason that most nodes give, as the scheduler words it.
func stopper(v whatif.Verdict) string {
	count := map[string]int{}
	for _, n := range v.Nodes {
		for _, b := range n.Blockers {
			count[b.Reason]++
		}
	}
	reasons := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) })
	if len(reasons) == 0 {
		return ""
	}
	return fmt.Sprintf("%s on %s", reasons[0], countOf(count[reasons[0]], "node"))
}
