package fixes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// finder is that of pod a/w, which asks for something on nodes of one A100 each.
func finder(t *testing.T, guard diagnosis.Guard, asks string, edit func(*cluster.State)) *Finder {
	t.Helper()
	p := rcatest.Victim("w", 0, 1, 0, "w")
	p.UID, p.Spec.NodeName, p.Spec.SchedulerName, p.Status = "w", "", corev1.DefaultSchedulerName, corev1.PodStatus{Phase: corev1.PodPending}
	r := p.Spec.Containers[0].Resources.Requests
	q := r[view.WholeGPU]
	delete(r, view.WholeGPU)
	r[corev1.ResourceName(asks)] = q
	st := &cluster.State{Now: rcatest.Noon, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}, Pods: []*corev1.Pod{p}}
	for _, name := range []string{"a", "b"} {
		n := sim.Node{Name: name, Model: "A100-40GB", Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}}
		st.Nodes, st.Geometries[name] = append(st.Nodes, n.Object(rcatest.Noon)), n.Geometry(rcatest.Noon)
	}
	if edit != nil {
		edit(st)
	}
	v, done, err := view.Open(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	k, err := causes.Open(evict.NewLedger(v), incident.Incident{ID: "i", Workload: incident.Ref{Kind: "ReplicaSet", Namespace: "a", Name: "w"}, Pods: []incident.PodRef{{Name: "w", UID: "w"}}, Waiting: 1})
	if err != nil {
		t.Fatal(err)
	}
	return New(k, nil, guard, nil)
}

// some are candidates of a kind that take so many minutes each.
func some(c *Finder, kind diagnosis.FixKind, minutes ...int) []*candidate {
	out := make([]*candidate, len(minutes))
	for i, m := range minutes {
		out[i] = c.candidate(nil, []edit.Change{{Kind: kind, Title: fmt.Sprintf("%s %02d", kind, m), Minutes: m}})
	}
	return out
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = n - i
	}
	return out
}

// Of each set of kinds the cheapest are tried until one is as good as can be, and no more than
// a dozen.
func TestHowManyAreTried(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	stranded := func(f *candidate) { f.stranded = 1 }
	for name, tc := range map[string]struct {
		all     []*candidate
		accepts map[int]func(*candidate) // by minutes
		tried   int
		best    string
	}{
		"none is accepted":   {some(c, diagnosis.FixSelector, upTo(20)...), nil, 12, "[]"},
		"fewer than a dozen": {some(c, diagnosis.FixSelector, upTo(5)...), nil, 5, "[]"},
		"the third is":       {some(c, diagnosis.FixSelector, upTo(20)...), map[int]func(*candidate){3: nil, 4: nil}, 3, "[FixSelector 03]"},
		"the last is":        {some(c, diagnosis.FixSelector, upTo(20)...), map[int]func(*candidate){12: nil}, 12, "[FixSelector 12]"},
		"one too late":       {some(c, diagnosis.FixSelector, upTo(20)...), map[int]func(*candidate){13: nil}, 12, "[]"},
		"the first strands":  {some(c, diagnosis.FixSelector, upTo(20)...), map[int]func(*candidate){1: stranded, 5: nil}, 5, "[FixSelector 05]"},
		"all strand":         {some(c, diagnosis.FixSelector, upTo(5)...), map[int]func(*candidate){2: stranded, 3: stranded}, 5, "[FixSelector 02]"},
		"each of two kinds":  {append(some(c, diagnosis.FixSelector, upTo(20)...), some(c, diagnosis.AddToleration, upTo(20)...)...), map[int]func(*candidate){2: nil}, 4, "[AddToleration 02 FixSelector 02]"},
		"neither of them":    {append(some(c, diagnosis.FixSelector, upTo(20)...), some(c, diagnosis.AddToleration, upTo(3)...)...), nil, 15, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			best, err := c.bestOf(t.Context(), slices.Clone(tc.all), func(_ context.Context, f *candidate) error {
				tried++
				f.fix.Proof.Verdict = diagnosis.Refuted
				if edit, ok := tc.accepts[f.fix.Cost.Minutes]; ok {
					if f.fix.Proof.Verdict = diagnosis.Schedules; edit != nil {
						edit(f)
					}
				}
				return nil
			})
			var titles []string
			for _, f := range best {
				titles = append(titles, f.fix.Title)
			}
			slices.Sort(titles)
			if err != nil || tried != tc.tried || fmt.Sprint(titles) != tc.best {
				t.Errorf("%d tried, best %v, %v; want %d, %s", tried, titles, err, tc.tried, tc.best)
			}
		})
	}
	no := errors.New("no")
	if _, err := c.bestOf(t.Context(), some(c, diagnosis.FixSelector, 1), func(context.Context, *candidate) error { return no }); !errors.Is(err, no) || err.Error() != `prove "FixSelector 01": no` {
		t.Error(err)
	}
}

// A wait of which nobody knows the end comes behind every other, whatever that costs; of two
// such the order is as of any two.
func TestEndlessWaitsComeLast(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	waits := some(c, diagnosis.Wait, 0, 90)
	endless, long := waits[0], waits[1]
	other := c.candidate(nil, []edit.Change{{Kind: diagnosis.Wait, Title: "Wait for another", Minutes: 0}})
	all := []*candidate{other, endless, long}
	slices.SortStableFunc(all, byCost)
	if want := []*candidate{long, endless, other}; !slices.Equal(all, want) || byCost(endless, endless) != 0 {
		for _, f := range all {
			t.Error(f.fix.Title)
		}
	}
}

// Of two that cost and bring the same the one that was tried first stays.
func TestOfEqualsTheFirstStays(t *testing.T) {
	equal := some(finder(t, nil, "nvidia.com/gpu", nil), diagnosis.FixSelector, 5, 5, 4)
	if equal[1].better(equal[0]) || !equal[2].better(equal[0]) {
		t.Error(equal[1].better(equal[0]), equal[2].better(equal[0]))
	}
}

// Those that are kept to be tried are those that come first, of equals as they came.
func TestWhatIsKeptToBeTried(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		minutes := make([]int, 5+r.IntN(40))
		for i := range minutes {
			minutes[i] = 1 + r.IntN(9)
		}
		all := some(c, diagnosis.FixSelector, minutes...)
		sorted := slices.Clone(all)
		slices.SortStableFunc(sorted, byCost)
		first := sorted[:min(maxTries, len(sorted))]
		want := slices.DeleteFunc(slices.Clone(all), func(f *candidate) bool { return !slices.Contains(first, f) })
		if got := triable(slices.Clone(all)); !slices.Equal(got, want) {
			t.Errorf("seed %d: %d are kept of %d", seed, len(got), len(all))
		}
	}
}

// No more is worked out than can be tried: where a dozen cost nobody anything, or less.
func TestWhatIsNotWorthWorkingOut(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	set := []edit.Change{{Kind: diagnosis.AddToleration}}
	for count, want := range map[int]bool{maxTries - 1: false, maxTries: true, maxTries + 1: true} {
		c.victimless = map[string]int{kindsKey(set, diagnosis.RepartitionGPU): count}
		if got := c.Enough([][]edit.Change{set}, diagnosis.RepartitionGPU); got != want {
			t.Errorf("%d: %v", count, got)
		}
		if c.Enough([][]edit.Change{set, set}, diagnosis.RepartitionGPU) || c.Enough([][]edit.Change{set}, diagnosis.FixSelector) {
			t.Error("of other sets nothing is known")
		}
	}
	n := c.Node("a")
	of := func(minutes int) *edit.Change {
		return &edit.Change{Kind: diagnosis.RepartitionGPU, Minutes: minutes}
	}
	c.first = map[string][]*candidate{}
	kinds := kindsKey(set, diagnosis.RepartitionGPU)
	for i := range maxTries {
		if c.Pointless(n, [][]edit.Change{set}, of(99)) {
			t.Errorf("pointless beside %d", i)
		}
		c.rank(kinds, c.candidate(n, append(slices.Clone(set), *of(maxTries - i))))
	}
	for minutes, want := range map[int]bool{1: false, maxTries - 1: false, maxTries: false, maxTries + 1: true} {
		if got := c.Pointless(n, [][]edit.Change{set}, of(minutes)); got != want {
			t.Errorf("%d minutes: %v", minutes, got)
		}
		if c.Pointless(n, [][]edit.Change{set, set}, of(minutes)) {
			t.Error("beside two sets")
		}
	}
	c.rank(kinds, c.candidate(n, append(slices.Clone(set), *of(0))))
	var kept []int
	for _, f := range c.first[kinds] {
		kept = append(kept, f.fix.Cost.Minutes)
	}
	if !slices.Equal(kept, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("kept %v", kept)
	}
}

// A fix costs what its changes cost together, on the nodes that they touch.
func TestWhatAFixCosts(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	on := func(name, node string) *corev1.Pod {
		p := rcatest.Victim(name, 0, 1, 0, name)
		p.Spec.NodeName = node
		return p
	}
	x, y := on("x", "b"), on("y", "a")
	node := func(*corev1.Node) {}
	for name, tc := range map[string]struct {
		n    *view.Node
		set  []edit.Change
		want string // nodes, victims, minutes, automatic, keeps, less, kind
	}{
		"an eviction":        {c.Node("a"), []edit.Change{{Kind: diagnosis.EvictPods, Victims: []*corev1.Pod{y}, Minutes: 1}}, "[a] 1 1 true true 0 EvictPods"},
		"off several nodes":  {nil, []edit.Change{{Kind: diagnosis.EvictPods, Victims: []*corev1.Pod{x, y, x}, Minutes: 1}}, "[a b] 2 1 true true 0 EvictPods"},
		"a wait":             {c.Node("a"), []edit.Change{{Kind: diagnosis.Wait, Victims: []*corev1.Pod{y}, Minutes: 5, Manual: true}}, "[] 0 5 false true 0 Wait"},
		"another request":    {c.Node("a"), []edit.Change{{Kind: diagnosis.ChangeRequest, Less: 2, Minutes: 1}}, "[] 0 1 true false 2 ChangeRequest"},
		"another claim":      {c.Node("a"), []edit.Change{{Kind: diagnosis.FixClaim, Manual: true}}, "[] 0 0 false false 0 FixClaim"},
		"a node is opened":   {c.Node("a"), []edit.Change{{Kind: diagnosis.UncordonNode, Node: node}}, "[a] 0 0 true true 0 UncordonNode"},
		"another layout":     {c.Node("a"), []edit.Change{{Kind: diagnosis.AddToleration, Minutes: 1}, {Kind: diagnosis.RepartitionGPU, Relayout: &relayout.Way{}, Minutes: 4}}, "[a] 0 5 true true 0 RepartitionGPU"},
		"one thing twice":    {c.Node("a"), []edit.Change{{Kind: diagnosis.RepairDeviceStack, Title: "t", Until: "u", Minutes: 20}, {Kind: diagnosis.RepairDeviceStack, Title: "t", Until: "u", Minutes: 20}}, "[] 0 20 true true 0 RepairDeviceStack"},
		"one after another":  {c.Node("a"), []edit.Change{{Kind: diagnosis.RepairDeviceStack, Title: "t", Until: "u", Minutes: 20}, {Kind: diagnosis.RepairDeviceStack, Title: "t", Until: "v", Minutes: 20}}, "[] 0 40 true true 0 RepairDeviceStack"},
		"the same pod twice": {c.Node("a"), []edit.Change{{Kind: diagnosis.EvictPods, Victims: []*corev1.Pod{y}}, {Kind: diagnosis.MovePods, Victims: []*corev1.Pod{y, x}}}, "[a] 2 0 true true 0 EvictPods"},
		"one by hand of two": {c.Node("a"), []edit.Change{{Kind: diagnosis.AddToleration}, {Kind: diagnosis.FixSelector, Manual: true}}, "[] 0 0 false true 0 FixSelector"},
	} {
		f := c.candidate(tc.n, tc.set)
		if got := fmt.Sprint(f.fix.Cost.Nodes, len(f.victims), f.fix.Cost.Minutes, f.fix.Automatic, f.keeps, f.less, " ", f.fix.Kind); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if (f.fix.Mechanism == diagnosis.MIGManager) != slices.ContainsFunc(tc.set, func(ch edit.Change) bool { return ch.Relayout != nil }) {
			t.Errorf("%s: by %s", name, f.fix.Mechanism)
		}
	}
}

// An entry whose outcome no copy can show may make what is asked where it is not known, or has
// the profile.
func TestWhatAnEntryMayMake(t *testing.T) {
	const text = "version: v1\nmig-configs:\n  ones: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n  both: [{devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 7}}, {devices: [1], mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n"
	for asks, may := range map[string]map[string]bool{
		"nvidia.com/mig-2g.10gb": {"ones": false, "both": true, "unknown": true},
		"nvidia.com/mig-1g.5gb":  {"ones": true, "both": true, "unknown": true},
		"nvidia.com/gpu":         {"ones": true, "both": true, "unknown": true},
	} {
		c := finder(t, nil, asks, func(st *cluster.State) {
			st.ConfigMaps = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "default-mig-parted-config"}, Data: map[string]string{"config.yaml": text}}}
		})
		for name, want := range may {
			if got := c.mayMake(c.Node("a"), name); got != want {
				t.Errorf("%s of %s: %v", asks, name, got)
			}
			c.Node("b").Labels[view.LabelMIGConfig] = name
			ch := c.waitForManager(c.Node("b"))[0][0]
			if known := name != "unknown"; (ch.Node != nil) != known || (ch.Untestable != "") != (!known && want) || ch.Until != "MIG manager has applied "+name {
				t.Errorf("%s of %s: %q, %v", asks, name, ch.Untestable, ch.Node != nil)
			}
		}
	}
}

// What is the pod's own is cleared by one change for each of its causes; what is told beside
// needs none, and a cause without any leaves nothing to offer.
func TestSetsOfWhatIsItsOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		own  []causes.PodRule
		want string
		ok   bool
	}{
		"nothing":              {nil, "[[]]", true},
		"one":                  {[]causes.PodRule{{ID: diagnosis.NoNodes}}, "[[ScaleNodePool for NoNodes]]", true},
		"two":                  {[]causes.PodRule{{ID: diagnosis.NoNodes}, {ID: diagnosis.SchedulingGated}}, "[[ScaleNodePool for NoNodes, Manual for SchedulingGated]]", true},
		"one beside":           {[]causes.PodRule{{ID: diagnosis.NoNodes, Aside: true}, {ID: diagnosis.SchedulingGated}}, "[[Manual for SchedulingGated]]", true},
		"one that admits none": {[]causes.PodRule{{ID: diagnosis.NoNodes}, {ID: diagnosis.MIGFull}}, "[]", false},
	} {
		c := finder(t, nil, "nvidia.com/gpu", nil)
		c.Own = tc.own
		sets, ok := c.ownSets()
		texts := make([]string, len(sets))
		for i, set := range sets {
			var parts []string
			for _, ch := range set {
				parts = append(parts, fmt.Sprintf("%s for %s", ch.Kind, ch.Cause))
			}
			texts[i] = "[" + strings.Join(parts, ", ") + "]"
		}
		if got := "[" + strings.Join(texts, " ") + "]"; got != tc.want || ok != tc.ok {
			t.Errorf("%s: %s, %v; want %s", name, got, ok, tc.want)
		}
	}
}

// What settles it are the causes that the best proved fix removes, each once, that of its most disruptive change
// first; what the autoscaler says counts where nothing is proved.
func TestRootOfWhatWasFound(t *testing.T) {
	fix := func(verdict diagnosis.Verdict, beside bool, removes diagnosis.CauseID, too ...diagnosis.CauseID) *candidate {
		f := &candidate{removes: removes, beside: beside, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: verdict}}}
		for _, id := range too {
			f.changes = append(f.changes, edit.Change{Cause: id})
		}
		return f
	}
	kind := func(k diagnosis.FixKind, f *candidate) *candidate {
		f.fix.Kind = k
		return f
	}
	for name, tc := range map[string]struct {
		all  Found
		want []diagnosis.CauseID
	}{
		"nothing":                {nil, nil},
		"a mend that is tried":   {Found{kind(diagnosis.RepairDeviceStack, fix(diagnosis.Waits, false, "A")), fix(diagnosis.Schedules, false, "B")}, []diagnosis.CauseID{"A"}},
		"it is not the first of": {Found{fix(diagnosis.Unproven, false, "C"), kind(diagnosis.RepairDeviceStack, fix(diagnosis.Waits, false, "A")), fix(diagnosis.Schedules, false, "B")}, []diagnosis.CauseID{"B"}},
		"a wait comes first":     {Found{kind(diagnosis.Wait, fix(diagnosis.Waits, false, "A")), fix(diagnosis.Schedules, false, "B")}, []diagnosis.CauseID{"B"}},
		"the first proved":       {Found{fix(diagnosis.Unproven, false, "A"), fix(diagnosis.Schedules, false, "B"), fix(diagnosis.Schedules, false, "C")}, []diagnosis.CauseID{"B"}},
		"that removes one":       {Found{fix(diagnosis.Schedules, false, ""), fix(diagnosis.Schedules, false, "C")}, []diagnosis.CauseID{"C"}},
		"it removes several":     {Found{fix(diagnosis.Schedules, false, "B", "A", "B", "", "A", "C")}, []diagnosis.CauseID{"B", "A", "C"}},
		"none is proved":         {Found{fix(diagnosis.Unproven, false, "A", "B")}, nil},
		"the autoscaler's word":  {Found{fix(diagnosis.Waits, true, "A")}, []diagnosis.CauseID{"A"}},
		"it is not the first":    {Found{fix(diagnosis.Unproven, false, "B"), fix(diagnosis.Waits, true, "A")}, nil},
	} {
		if got := tc.all.Root(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// The GPU that is drawn again is the one that the best fix names, as it will be.
func TestWhichGPUIsRedrawn(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	n, at, gone := c.Node("a"), 0, 7
	twos := placement.Layout{"2g.10gb": 3}
	relayout := []edit.Change{{Kind: diagnosis.AddToleration}, {Kind: diagnosis.RepartitionGPU, Relayout: &relayout.Way{Node: n, Now: c.Cluster.ClassOf(n).Layouts, Wanted: map[int]placement.Layout{0: twos}, Remade: []int{0}}}}
	fix := func(gpu *int, set []edit.Change) *candidate {
		return &candidate{node: n, changes: set, fix: diagnosis.Fix{Proof: diagnosis.Proof{GPU: gpu}}}
	}
	for name, tc := range map[string]struct {
		all  Found
		want bool
	}{
		"one":                {Found{fix(nil, relayout[:1]), fix(&at, relayout)}, true},
		"none by a layout":   {Found{fix(&at, relayout[:1])}, false},
		"none is named":      {Found{fix(nil, relayout)}, false},
		"one that is not so": {Found{fix(&gone, relayout)}, false},
	} {
		node, g, layout, ok := tc.all.Redrawn()
		if ok != tc.want || ok && (node != n || g.Index != 0 || !reflect.DeepEqual(layout, twos)) {
			t.Errorf("%s: %v, %v", name, layout, ok)
		}
	}
}

// What guard-rails say of nodes is asked once; what holds back all tells none apart, and what
// is refused is no longer carried out.
func TestGuardRailsHoldBack(t *testing.T) {
	var asked []string
	says := map[string]diagnosis.Held{}
	guard := func(_ incident.Incident, f diagnosis.Fix) diagnosis.Held {
		asked = append(asked, fmt.Sprint(f.Cost.Nodes, len(f.Actions)))
		return says[strings.Join(f.Cost.Nodes, " ")]
	}
	open := func(node string, manual bool) []edit.Change {
		return []edit.Change{{Kind: diagnosis.UncordonNode, Node: func(*corev1.Node) {}, Manual: manual, Title: node}}
	}
	c := finder(t, guard, "nvidia.com/gpu", nil)
	asked = nil
	says["a"] = diagnosis.Held{Why: "a is parked", Refused: true}
	says["b"] = diagnosis.Held{Why: "b waits"}
	a, again, b, byHand := c.candidate(c.Node("a"), open("a", false)), c.candidate(c.Node("a"), open("a", false)), c.candidate(c.Node("b"), open("b", false)), c.candidate(c.Node("a"), open("a", true))
	layout := c.candidate(c.Node("a"), []edit.Change{{Kind: diagnosis.QuarantineGPU, Node: func(*corev1.Node) {}}})
	if !a.held || !again.held || !b.held || byHand.held || !layout.held || !slices.Equal(asked, []string{"[a] 0", "[b] 0", "[a] 1"}) {
		t.Errorf("held %v %v %v %v %v, asked %q", a.held, again.held, b.held, byHand.held, layout.held, asked)
	}
	for f, want := range map[*candidate]string{a: "false true a is parked ok; refused now: a is parked", b: "true true b waits ok; held back now: b waits", byHand: "false false  ok"} {
		f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Schedules, Why: "ok"}
		c.hold(f)
		if got := fmt.Sprint(f.fix.Automatic, " ", f.held, " ", f.fix.Held, " ", f.fix.Proof.Why); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	again.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Refuted, Why: "no"}
	if c.hold(again); again.fix.Held != "" || !again.fix.Automatic {
		t.Error("what is refuted is not asked about")
	}
	says[""] = diagnosis.Held{Why: "paused"}
	says["a"] = says[""]
	c = finder(t, guard, "nvidia.com/gpu", nil)
	f := c.candidate(c.Node("a"), open("a", false))
	f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Schedules, Why: "ok"}
	if c.hold(f); f.held || f.fix.Held != "paused" || f.fix.Proof.Why != "ok; held back now: paused" {
		t.Errorf("%v, %q, %q", f.held, f.fix.Held, f.fix.Proof.Why)
	}
}
