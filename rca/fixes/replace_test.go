package fixes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// A rolling Deployment takes away old pods that wait, and of those that run no more than
// leaves enough available.
func TestHowManyOldPodsGo(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted, unavailable, old, waiting, made, placed int
		want                                            string // of those that wait, and that run
	}{
		"none may be missing":          {3, 0, 3, 0, 0, 0, "0 0"},
		"one may":                      {3, 1, 3, 0, 0, 0, "0 1"},
		"a new one runs":               {3, 0, 3, 0, 1, 1, "0 1"},
		"a new one waits":              {3, 0, 3, 0, 1, 0, "0 0"},
		"an old one waits":             {3, 1, 2, 1, 0, 0, "1 0"},
		"who waits goes, nobody else":  {3, 0, 2, 1, 1, 1, "1 0"},
		"who waits goes, and one runs": {3, 1, 2, 1, 1, 1, "1 1"},
		"all are replaced":             {3, 0, 3, 0, 3, 3, "0 3"},
		"more may go than there are":   {3, 3, 1, 0, 3, 3, "0 1"},
		"fewer run than have to":       {4, 1, 2, 2, 0, 0, "1 0"},
		"all wait":                     {2, 0, 0, 2, 2, 0, "0 0"},
	} {
		p := replacing{Rolling: &edit.Rolling{Wanted: tc.wanted, Unavailable: tc.unavailable}, old: make([]*corev1.Pod, tc.old), made: tc.made, placed: tc.placed}
		gone, stop := p.down(tc.waiting)
		if got := fmt.Sprint(gone, " ", stop); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// What becomes of a workload whose pods each fill a node, of which there are two: by how its
// controller replaces them.
func TestHowAWorkloadIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		r       edit.Rolling
		running int
		want    string // how many more run, how many wait, who was stopped
	}{
		"one at a time":              {edit.Rolling{Wanted: 2, Unavailable: 1}, 2, "0 more, 0 wait, [a b] stopped"},
		"no room for one more":       {edit.Rolling{Wanted: 2, Surge: 1}, 2, "0 more, 1 wait, [] stopped"},
		"room for one more":          {edit.Rolling{Wanted: 1, Surge: 1}, 1, "0 more, 0 wait, [a] stopped"},
		"all at once":                {edit.Rolling{Wanted: 2, AtOnce: true}, 2, "0 more, 0 wait, [a b] stopped"},
		"more than there is room":    {edit.Rolling{Wanted: 3, AtOnce: true}, 2, "0 more, 1 wait, [a b] stopped"},
		"one that is missing, too":   {edit.Rolling{Wanted: 2, AtOnce: true}, 1, "1 more, 0 wait, [a] stopped"},
		"in turn":                    {edit.Rolling{Wanted: 2, InTurn: true}, 2, "0 more, 0 wait, [a b] stopped"},
		"in turn, the missing first": {edit.Rolling{Wanted: 2, InTurn: true}, 1, "1 more, 0 wait, [a] stopped"},
		"in turn, and it stops":      {edit.Rolling{Wanted: 3, InTurn: true}, 2, "0 more, 1 wait, [] stopped"},
		"who waits goes first":       {edit.Rolling{Wanted: 3, Unavailable: 1, Pending: make([]*corev1.Pod, 1)}, 2, "0 more, 1 wait, [] stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			var old []*corev1.Pod
			c := finder(t, nil, "nvidia.com/mig-1g.5gb", func(st *cluster.State) {
				for _, node := range []string{"a", "b"}[:tc.running] {
					p := filling(node)
					p.Spec.NodeName = node
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
					old = append(old, p)
				}
				st.Pods = append(st.Pods, old...)
			})
			tc.r.Running = old
			err := whatif.Try(c.Cluster.Snapshot, func(s *whatif.Snapshot) error {
				o, err := c.replace(t.Context(), s, &tc.r, filling)
				var stopped []string
				for _, p := range o.stopped {
					stopped = append(stopped, p.Name)
				}
				if got := fmt.Sprintf("%d more, %d wait, %v stopped", o.runs, o.pending, stopped); got != tc.want {
					t.Errorf("%s, want %s", got, tc.want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// filling is a pod that asks for all that a node has.
func filling(name string) *corev1.Pod {
	p := rcatest.Victim(name, 0, 0, 0, "w")
	p.Spec.NodeName = ""
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("7")}
	return p
}

// On several nodes the cheapest parts are taken that make room for all that is needed, or for
// as many as there can be: at most one of each node, as trying all of them shows.
func TestCheapestOnSeveralNodes(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var parts []*candidate
		for n := range 1 + r.IntN(4) {
			node := &view.Node{Node: &corev1.Node{}}
			node.Name = fmt.Sprint("n", n)
			for range 1 + r.IntN(3) {
				parts = append(parts, &candidate{node: node, pods: r.IntN(4), cost: evict.Cost{Sum: int64(r.IntN(9)), Number: 1 + r.IntN(3)}})
			}
		}
		need := 1 + r.IntN(6)
		pods, cost, nodes := 0, evict.NoVictims, 0
		var try func(rest []*candidate, have int, sum evict.Cost, on []*view.Node)
		try = func(rest []*candidate, have int, sum evict.Cost, on []*view.Node) {
			got := min(have, need)
			if worse := pods - got; worse < 0 || worse == 0 && len(on) > 0 && (sum.Compare(cost) < 0 || sum.Compare(cost) == 0 && len(on) < nodes) {
				pods, cost, nodes = got, sum, len(on)
			}
			for i, f := range rest {
				if !slices.Contains(on, f.node) {
					try(rest[i+1:], have+max(1, f.pods), sum.Plus(f.cost), append(slices.Clone(on), f.node))
				}
			}
		}
		try(parts, 0, evict.NoVictims, nil)
		s := cheapest(slices.Clone(parts), need)
		if s == nil || s.pods != pods || s.cost.Compare(cost) != 0 || s.nodes != nodes {
			t.Errorf("seed %d, %d needed: %+v; want %d pods on %d nodes for %+v", seed, need, s, pods, nodes, cost)
			continue
		}
		seen, sum, n := map[*view.Node]bool{}, evict.NoVictims, 0
		for at := s; at.part != nil; at = at.before {
			if n++; seen[at.part.node] {
				t.Errorf("seed %d: %s twice", seed, at.part.node.Name)
			}
			seen[at.part.node], sum = true, sum.Plus(at.part.cost)
		}
		if n != nodes || sum.Compare(cost) != 0 {
			t.Errorf("seed %d: %d parts for %+v", seed, n, sum)
		}
	}
	if s := cheapest(nil, 3); s != nil && s.part != nil {
		t.Errorf("%+v of nothing", s)
	}
}

// Only what makes room on a node by itself is put together: by evicting, automatically, or by
// another layout; for what was asked.
func TestWhatMakesRoom(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	n, v := c.Node("a"), []*corev1.Pod{rcatest.Victim("v", 0, 1, 0, "v")}
	evicting := edit.Change{Kind: diagnosis.EvictPods, Victims: v, Title: "evict"}
	layout := edit.Change{Kind: diagnosis.RepartitionGPU, Relayout: &relayout.Way{}, Title: "layout"}
	byHand := func(ch edit.Change) edit.Change {
		ch.Manual = true
		return ch
	}
	all := []*candidate{
		c.candidate(n, []edit.Change{evicting}), c.candidate(n, []edit.Change{byHand(evicting)}), c.candidate(nil, []edit.Change{evicting}),
		c.candidate(n, []edit.Change{layout}), c.candidate(n, []edit.Change{byHand(layout)}), c.candidate(nil, []edit.Change{layout}),
		c.candidate(n, []edit.Change{{Kind: diagnosis.ChangeRequest, Title: "less"}, evicting}), c.candidate(n, []edit.Change{{Kind: diagnosis.FixClaim, Title: "less"}, layout}),
		c.candidate(n, []edit.Change{{Kind: diagnosis.UncordonNode, Title: "open"}}), c.candidate(n, []edit.Change{{Kind: diagnosis.UncordonNode, Title: "open"}, evicting}),
	}
	var got []int
	for i, f := range all {
		if slices.Contains(roomMakers(all), f) {
			got = append(got, i)
		}
	}
	if !slices.Equal(got, []int{0, 3, 4, 9}) {
		t.Errorf("%v", got)
	}
	text := strings.Builder{}
	for _, f := range roomMakers(all) {
		text.WriteString(f.fix.Title + ";")
	}
	if text.String() != "evict;layout;layout;open; evict;" {
		t.Errorf("%s", text.String())
	}
}

// Parts on several nodes are one fix: what is the pods' own once, the rest on its node; layouts
// of several nodes a person makes, one after the other.
func TestPartsOnSeveralNodes(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	own := edit.Change{Kind: diagnosis.AddToleration, Title: "tolerate"}
	for name, tc := range map[string]struct {
		kind      diagnosis.FixKind
		layout    bool
		title     string
		automatic bool
	}{
		"evictions": {diagnosis.EvictPods, false, "tolerate; on a; on b", true},
		"layouts":   {diagnosis.RepartitionGPU, true, "tolerate; on a; on b (2 nodes, one after the other)", false},
	} {
		s := &share{cost: evict.NoVictims}
		for _, node := range []string{"a", "b"} {
			ch := edit.Change{Kind: tc.kind, Title: "on " + node, Victims: []*corev1.Pod{rcatest.Victim("v"+node, 0, 1, 0, node)}}
			if tc.layout {
				ch.Relayout = &relayout.Way{Node: c.Node(node), Remade: []int{0}}
			}
			s = &share{part: c.candidate(c.Node(node), []edit.Change{own, ch}), before: s, pods: s.pods + 1, nodes: s.nodes + 1}
		}
		f := c.together(s)
		if f.fix.Title != tc.title || f.fix.Automatic != tc.automatic || f.pods != 2 || !slices.Equal(f.fix.Cost.Nodes, []string{"a", "b"}) || !slices.Equal(f.fix.Kinds, []diagnosis.FixKind{diagnosis.AddToleration, tc.kind}) || len(f.victims) != 2 {
			t.Errorf("%s: %q, automatic %v, %d pods, %q, %v", name, f.fix.Title, f.fix.Automatic, f.pods, f.fix.Cost.Nodes, f.fix.Kinds)
		}
		for _, ch := range f.changes[1:] {
			if ch.On == nil || "on "+ch.On.Name != ch.Title {
				t.Errorf("%s: %s is on %v", name, ch.Title, ch.On)
			}
		}
	}
}

// Where nothing is found a person has to look, told why.
func TestWhereNothingIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		causes []diagnosis.Cause
		unborn bool
		says   string
		look   string
	}{
		"no cause":         {nil, false, "the facts do not settle it", "kubectl -n a describe pod w"},
		"the first cause":  {[]diagnosis.Cause{{ID: diagnosis.TopologySpreadConflict}, {ID: diagnosis.Unknown}}, false, "nothing that can be tried on a copy helps against TopologySpreadConflict", "kubectl -n a describe pod w"},
		"all is held":      {[]diagnosis.Cause{{ID: diagnosis.MIGFull}, {ID: diagnosis.Unknown}}, false, "the node is not there yet", "kubectl get nodes -o custom-columns=NAME:.metadata.name,HAS:.status.allocatable"},
		"a layout is made": {[]diagnosis.Cause{{ID: diagnosis.MIGConfigInProgress}}, false, "nothing that can be tried on a copy helps against MIGConfigInProgress", "kubectl -n a describe pod w"},
		"no pod yet":       {nil, true, "the facts do not settle it", "kubectl -n a describe replicaset/w"},
	} {
		c := finder(t, nil, "nvidia.com/gpu", nil)
		c.Unborn = tc.unborn
		f := c.ranked(nil, tc.causes)[0]
		if f.fix.Proof.Why != tc.says || f.fix.Proof.Verdict != diagnosis.Unproven || f.fix.Commands[0] != tc.look || f.fix.ID != 1 || f.fix.Automatic {
			t.Errorf("%s: %+v", name, f.fix)
		}
	}
}

// A rollout that halts does not stop all who run, and its title does not say so.
func TestHowManyARolloutStops(t *testing.T) {
	for want, k := range map[string][2]int{
		"": {0, 0}, ", stopping 1 running pod": {1, 1}, ", stopping 3 running pods": {3, 3},
		", which halts before it stops 1 running pod": {0, 1}, ", stopping 1 of 3 running pods before it halts": {1, 3},
	} {
		if got := stopping(k[0], k[1]); got != want {
			t.Errorf("%d of %d: %q, want %q", k[0], k[1], got, want)
		}
	}
}
