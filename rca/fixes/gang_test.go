package fixes

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/whatif"
)

// looked is a finder whose case was looked at and judged.
func looked(t *testing.T, kind string, edit func(*cluster.State)) (*Finder, []diagnosis.NodeBlockers) {
	t.Helper()
	c := finder(t, nil, "nvidia.com/mig-1g.5gb", edit)
	c.Incident.Workload.Kind, c.Incident.ID = kind, c.Cluster.IncidentOf(c.Pod)
	if err := c.Look(t.Context(), func() *devices.Inventory { return devices.TakeInventory(c.Cluster.State) }, nil); err != nil {
		t.Fatal(err)
	}
	nodes, _ := c.Judge()
	return c, nodes
}

// gang has so many pods wait as members of a gang of which so many have to begin together, on
// one node whose other instances are held by what is left.
func gang(members, least int, held ...string) func(*cluster.State) {
	return func(st *cluster.State) {
		st.Nodes = st.Nodes[:1]
		first := st.Pods[0]
		first.Labels["scheduling.x-k8s.io/pod-group"] = "g"
		for i := 1; i < members; i++ {
			p := first.DeepCopy()
			p.Name, p.UID = string(rune('w'+i)), ""
			st.Pods = append(st.Pods, p)
		}
		st.PodGroups.Plugins = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "g"}, "spec": map[string]any{"minMember": int64(least)}}}}
		for i, n := range held {
			p := rcatest.Victim(string(rune('h'+i)), 0, 1, 0, "h")
			p.Spec.NodeName, p.Spec.Containers[0].Resources.Requests = "a", rcatest.List("nvidia.com/mig-1g.5gb", n)
			st.Pods = append(st.Pods, p)
		}
	}
}

// A gang is let in whole or not at all: who fits beside the first has a node on the copy too, as
// many as its least number wants, and no more.
func TestTheRestOfAGangIsPlaced(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*cluster.State)
		rest string // the others that it lacks
		why  string
		on   string // who of them has a node
	}{
		"no gang":             {func(*cluster.State) {}, "", "", ""},
		"both fit":            {gang(2, 2, "5"), "x", "", "x"},
		"the second does not": {gang(2, 2, "6"), "x", "it would fit, but not all 2 members of its gang do", ""},
		"more than it needs":  {gang(4, 3), "x y", "", "x y"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := looked(t, "ReplicaSet", tc.edit)
			if c.Gang != nil {
				var names []string
				for _, m := range c.rest() {
					names = append(names, m.Name)
				}
				if got := strings.Join(names, " "); got != tc.rest {
					t.Errorf("rest %q, want %q", got, tc.rest)
				}
			}
			f := &candidate{places: map[string]string{}}
			placed := map[string]bool{}
			err := whatif.Try(c.Cluster.Snapshot, func(s *whatif.Snapshot) error {
				if _, err := s.Place(t.Context(), c.Pod); err != nil {
					return err
				}
				why, err := c.refusedRest(t.Context(), s, f, placed)
				if why != tc.why {
					t.Errorf("%q, want %q", why, tc.why)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			var on []string
			for name := range f.places {
				if on = append(on, name); !placed[name] {
					t.Errorf("%s is not noted", name)
				}
			}
			if slices.Sort(on); strings.Join(on, " ") != tc.on || len(placed) != len(on) {
				t.Errorf("placed %v, %v; want %q", f.places, placed, tc.on)
			}
		})
	}
}

// What makes room for a gang is proved where those who leave do not come back: until all of it
// has a node nobody holds the room.
func TestGangsAreProvedWhole(t *testing.T) {
	alone := func(edit func(*cluster.State)) func(*cluster.State) {
		return func(st *cluster.State) {
			edit(st)
			for _, p := range st.Pods {
				if p.Spec.NodeName != "" {
					p.OwnerReferences = nil
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		edit    func(*cluster.State)
		title   string
		verdict diagnosis.Verdict
		why     string
	}{
		"who leaves comes back": {gang(2, 2, "5", "2"), "evict a/h from a", diagnosis.Unproven, "; with it all 2 members of its gang have a node, unless the evicted pods come back first: nobody holds the room for a whole gang meanwhile"},
		"who leaves is gone":    {alone(gang(2, 2, "5", "2")), "evict a/h from a", diagnosis.Schedules, "; with it all 2 members of its gang have a node; victims that do not come back"},
	} {
		t.Run(name, func(t *testing.T) {
			c, nodes := looked(t, "ReplicaSet", tc.edit)
			found, err := c.Find(t.Context(), nodes, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if f.fix.Title == tc.title {
					if f.fix.Proof.Verdict != tc.verdict || !strings.Contains(f.fix.Proof.Why, tc.why) {
						t.Errorf("%+v", f.fix.Proof)
					}
					return
				}
			}
			for _, f := range found {
				t.Errorf("found %s: %+v", f.fix.Title, f.fix.Proof)
			}
		})
	}
}

// Room for a gang is made where somebody can leave for it, for the cause of the first node that
// lacks what it asks, beside all that is the pod's own.
func TestWhereRoomForAGangIsMade(t *testing.T) {
	own := [][]edit.Change{{{Title: "a"}}, {{Title: "b"}}}
	c, _ := looked(t, "ReplicaSet", gang(2, 2, "5", "2"))
	if got := c.firstShort(); got != diagnosis.MIGInstancesInUse {
		t.Errorf("for %s", got)
	}
	var titles []string
	for _, set := range c.gangSets(own) {
		for _, ch := range set {
			titles = append(titles, ch.Title)
		}
	}
	if got, want := strings.Join(titles, "; "), "a; evict a/h so that all of gang g fit; a; wait until a/h leaves; b; evict a/h so that all of gang g fit; b; wait until a/h leaves"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.Gang.Victims = nil
	if got := c.gangSets(own); got != nil {
		t.Errorf("where nobody can leave: %+v", got)
	}
	c.Own = []causes.PodRule{{ID: diagnosis.GangIncomplete}}
	if got := c.gangSets(own); len(got) != 2 {
		t.Errorf("where it is its own: %+v", got)
	}
	c.Verdict.Nodes = nil
	if got := c.firstShort(); got != diagnosis.GangIncomplete {
		t.Errorf("of no node: %s", got)
	}
}

// The scheduler preempts by itself, or by the least class under which it makes room; of classes
// a few are tried, and for a workload whose pods cannot be given one nothing is.
func TestPreemptionIsOffered(t *testing.T) {
	held := func(own, holder int32, never bool, classes ...int32) func(*cluster.State) {
		return func(st *cluster.State) {
			gang(1, 1, "7")(st)
			st.PodGroups.Plugins, st.Pods[0].Labels = nil, nil
			*st.Pods[0].Spec.Priority, *st.Pods[1].Spec.Priority = own, holder
			if policy := corev1.PreemptNever; never {
				st.Pods[0].Spec.PreemptionPolicy = &policy
			}
			for i, value := range classes {
				st.PriorityClasses = append(st.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: string(rune('p' + i))}, Value: value})
			}
		}
	}
	for name, tc := range map[string]struct {
		kind string
		edit func(*cluster.State)
		want string
	}{
		"by itself":                 {"Job", held(60, 50, false), "the scheduler preempts a/h on a by itself"},
		"by a class":                {"Job", held(50, 50, false, 100), "give job/w priority 100 by class p: the scheduler preempts a/h"},
		"by the second":             {"Job", held(50, 50, true, 50, 100), "give job/w priority 100 by class q: the scheduler preempts a/h"},
		"the third is not tried":    {"Job", held(50, 50, true, 50, 50, 100), ""},
		"there is no class":         {"Job", held(50, 50, false), ""},
		"who is worth more stays":   {"Job", held(0, 50, false, 100), ""},
		"its pods stay as they are": {"ReplicaSet", held(60, 50, false), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := looked(t, tc.kind, tc.edit)
			all, err := c.raises(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range all {
				got += f.fix.Title
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Evictions after which everybody lands are called moves, and nothing else is.
func TestEvictionsThatLandAreMoves(t *testing.T) {
	f := &candidate{fix: diagnosis.Fix{Kind: diagnosis.EvictPods, Kinds: []diagnosis.FixKind{diagnosis.AddToleration, diagnosis.EvictPods}}}
	if f.move(); f.fix.Kind != diagnosis.MovePods || !slices.Equal(f.fix.Kinds, []diagnosis.FixKind{diagnosis.AddToleration, diagnosis.MovePods}) {
		t.Errorf("%s, %v", f.fix.Kind, f.fix.Kinds)
	}
	f = &candidate{fix: diagnosis.Fix{Kind: diagnosis.RepartitionGPU, Kinds: []diagnosis.FixKind{diagnosis.RepartitionGPU}}}
	if f.move(); f.fix.Kind != diagnosis.RepartitionGPU || f.fix.Kinds[0] != diagnosis.RepartitionGPU {
		t.Errorf("%s, %v", f.fix.Kind, f.fix.Kinds)
	}
}

// A pod is made again once all else is done; the rest stays in its order. A fix touches the node
// that it is about, else those that its victims leave.
func TestTheOrderOfWhatIsDone(t *testing.T) {
	set := []edit.Change{{Kind: diagnosis.RecreatePod, Title: "again"}, {Kind: diagnosis.Wait, Title: "b"}, {Kind: diagnosis.EvictPods, Title: "a"}}
	for want, given := range map[string][]edit.Change{"b a again": set, "again": set[:1], "b a": set[1:], "": nil} {
		var titles []string
		for _, ch := range recreatedLast(given) {
			titles = append(titles, ch.Title)
		}
		if got := strings.Join(titles, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if set[0].Title != "again" {
		t.Error("what was given is in another order")
	}
	on := func(node string) *corev1.Pod {
		p := rcatest.Victim("v", 0, 1, 0, "v")
		p.Spec.NodeName = node
		return p
	}
	c := finder(t, nil, "nvidia.com/gpu", nil)
	if got := touched(c.Cluster.Nodes["b"], []*corev1.Pod{on("a")}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%v", got)
	}
	if got := touched(nil, []*corev1.Pod{on("d"), on("a"), on("d")}); !slices.Equal(got, []string{"a", "d"}) {
		t.Errorf("%v", got)
	}
}

// Candidates that cost nobody anything are counted by their kinds, so that no more are worked out
// than will be tried; those for which somebody leaves are not among them.
func TestCandidatesThatCostNobodyAreCounted(t *testing.T) {
	c, nodes := looked(t, "ReplicaSet", func(st *cluster.State) {
		gang(1, 1, "7")(st)
		st.PodGroups.Plugins, st.Pods[0].Labels = nil, nil
		closed := st.Nodes[0].DeepCopy()
		closed.Name, closed.Spec.Unschedulable = "closed", true
		st.Nodes = append(st.Nodes, closed)
	})
	want, dear := map[string]int{}, 0
	for _, f := range c.candidates(nodes) {
		if len(f.victims) == 0 {
			want[f.kindsKey()]++
		} else {
			dear++
		}
	}
	if len(want) < 2 || dear == 0 || !maps.Equal(c.victimless, want) {
		t.Errorf("%v, want %v; %d cost somebody something", c.victimless, want, dear)
	}
}
