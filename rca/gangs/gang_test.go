package gangs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// opened is pod a/w of a world, as gangs are read for it.
func opened(t *testing.T, w *rcatest.World) (view.Subject, *evict.Asker) {
	t.Helper()
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return view.Subject{Cluster: v, Pod: w.Wait}, evict.NewLedger(v).ForPod(w.Wait)
}

// group has a PodGroup of so many, of which a/w and other pods are, each asking for two GPUs.
func group(w *rcatest.World, least int64, others ...string) {
	w.PodGroups.Plugins = append(w.PodGroups.Plugins, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "train"}, "spec": map[string]any{"minMember": least}}})
	w.Asking(rcatest.List("nvidia.com/gpu", "2"))
	w.Wait.Labels["scheduling.x-k8s.io/pod-group"] = "train"
	for _, name := range others {
		p := w.Wait.DeepCopy()
		p.Name, p.UID = name, types.UID(name)
		w.Pods = append(w.Pods, p)
	}
}

// Which pods room is made for, and that it is for all at once.
func TestVictimsAreForTheWholeGang(t *testing.T) {
	w := rcatest.NewWorld()
	w.AddNode(sim.Node{Name: "n1", GPUs: 4, MIGOff: []int{0, 1, 2, 3}})
	for _, name := range []string{"x", "y"} {
		w.AddHolder(name, "n1", "nvidia.com/gpu", 0)
	}
	group(w, 2, "u", "v")
	of, by := opened(t, w)
	g, err := Read(t.Context(), of, by)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%d %v %q on %d %d %d %v %s", g.Fit, g.exact, g.stops, g.stopped, g.Lacks(), g.Missing(), g.Incomplete(), view.PodList(g.Victims))
	if want := `1 true "Insufficient nvidia.com/gpu" on 1 2 0 true 2 pods (a/x, …)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	names := ""
	for _, p := range g.Order() {
		names += p.Name
	}
	if names != "wuv" {
		t.Errorf("this one first: %s", names)
	}
}

// This one is placed first, the others by what they ask, the most first.
func TestTheLargestComesFirst(t *testing.T) {
	w := rcatest.NewWorld()
	group(w, 4, "less", "more", "most")
	for i, count := range []string{"2", "1", "3", "4"} {
		list := rcatest.List("nvidia.com/gpu", count)
		w.Pods[i].Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	of, _ := opened(t, w)
	var got []string
	for _, p := range find(of).Order() {
		got = append(got, p.Name)
	}
	if strings.Join(got, " ") != "w most more less" {
		t.Errorf("%q", got)
	}
}

// Who is a member is of the namespace, has not ended and does not leave; a group has as many with
// a node, and as many running, as there are.
func TestWhoIsAMember(t *testing.T) {
	w := rcatest.NewWorld()
	group(w, 9, "waits", "bound", "runs", "ended", "leaves", "elsewhere")
	for _, p := range w.Pods {
		switch p.Name {
		case "bound":
			p.Spec.NodeName = "n"
		case "runs":
			p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning
		case "ended":
			p.Status.Phase = corev1.PodSucceeded
		case "leaves":
			p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon}
		case "elsewhere":
			p.Namespace = "b"
		}
	}
	of, _ := opened(t, w)
	g := find(of)
	if got := fmt.Sprintf("%d made, %d bound, %d running, %d waiting, %d missing, %d lack a node", g.Made(), g.bound, g.running, len(g.waiting), g.Missing(), g.Lacks()); got != "4 made, 2 bound, 1 running, 2 waiting, 5 missing, 7 lack a node" {
		t.Error(got)
	}
	w.PodGroups.Plugins[0].Object["spec"] = map[string]any{"minMember": int64(2)}
	if g := find(of); g != nil {
		t.Errorf("%+v, of which enough have a node", g)
	}
}

// Nobody leaves for a gang of which members are yet to be made.
func TestNobodyLeavesForMembersThatDoNotExist(t *testing.T) {
	w := rcatest.NewWorld()
	w.AddNode(sim.Node{Name: "n1", GPUs: 4, MIGOff: []int{0, 1, 2, 3}})
	for _, name := range []string{"x", "y"} {
		w.AddHolder(name, "n1", "nvidia.com/gpu", 0)
	}
	group(w, 3, "u")
	of, by := opened(t, w)
	g, err := Read(t.Context(), of, by)
	if err != nil || g.Missing() != 1 || g.Fit != 1 || len(g.Victims) != 0 {
		t.Errorf("%+v, %v", g, err)
	}
}

// A group without its object is told where it is the API server's own, which is waited for.
func TestAGroupThatDoesNotExist(t *testing.T) {
	const none = "likely: its PodGroup train does not exist"
	own := func(w *rcatest.World) {
		name := "train"
		w.Wait.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	}
	exists := func(w *rcatest.World) {
		own(w)
		w.PodGroups.Kubernetes = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "train"}, "spec": map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(2)}}}}}}
	}
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		want string
	}{
		"the API server's":           {own, none},
		"it was not read":            {func(w *rcatest.World) { own(w); w.Unread["PodGroup.scheduling.k8s.io"] = "x" }, ""},
		"another scheduler's":        {func(w *rcatest.World) { w.Wait.Labels["scheduling.x-k8s.io/pod-group"] = "train" }, ""},
		"it exists":                  {exists, "proven: 1 of 2 members of its gang exist"},
		"one of another name":        {func(w *rcatest.World) { exists(w); w.PodGroups.Kubernetes[0].SetName("other") }, none},
		"one of another namespace":   {func(w *rcatest.World) { exists(w); w.PodGroups.Kubernetes[0].SetNamespace("b") }, none},
		"it is there, others unread": {func(w *rcatest.World) { exists(w); w.Unread["PodGroup.scheduling.x-k8s.io"] = "x" }, "proven: 1 of 2 members of its gang exist"},
	} {
		w := rcatest.NewWorld()
		w.Asking(rcatest.List("nvidia.com/gpu", "2"))
		tc.fill(w)
		of, by := opened(t, w)
		g, err := Read(t.Context(), of, by)
		if err != nil {
			t.Fatal(err)
		}
		if got := found(g.Tell(true)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Of a pod that is not made yet a gang is told where others of it exist: else they are made
// together, or refused one by one.
func TestAGangOfWhoIsNotMade(t *testing.T) {
	for want, others := range map[string][]string{"<nil>": nil, "1 of 3 members of its gang exist": {"u"}} {
		w := rcatest.NewWorld()
		w.AddNode(sim.Node{Name: "n1", GPUs: 1, MIGOff: []int{0}})
		group(w, 3, others...)
		w.Pods = slices.DeleteFunc(w.Pods, func(p *corev1.Pod) bool { return p == w.Wait })
		of, by := opened(t, w)
		of.Unborn = true
		g, err := Read(t.Context(), of, by)
		if err != nil {
			t.Fatal(err)
		}
		got := "<nil>"
		if g != nil {
			got = g.Tell(true).Says
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What is told of a gang, by what exists and what fits.
func TestWhatAGangLacks(t *testing.T) {
	for name, tc := range map[string]struct {
		least  int64
		others []string
		gpus   []int
		fits   bool
		unread string
		want   string
	}{
		"all fit":            {2, []string{"u"}, []int{0, 1, 2, 3}, true, "", "<nil>"},
		"one does not exist": {2, nil, []int{0, 1, 2, 3}, true, "", "proven: 1 of 2 members of its gang exist"},
		"one does not fit":   {2, []string{"u"}, []int{0, 1}, true, "", "proven: 1 of 2 members of its gang fit together; placed one after another on a copy, 1 has room; the next is stopped by: Insufficient nvidia.com/gpu on 1 node"},
		"not even this one":  {2, []string{"u"}, []int{0}, false, "", "<nil>"},
		"pods are not read":  {2, nil, []int{0, 1}, true, "forbidden", "likely: 1 of 2 members of its gang exist"},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n1", GPUs: len(tc.gpus), MIGOff: tc.gpus})
			group(w, tc.least, tc.others...)
			if tc.unread != "" {
				w.Unread["Pod"] = tc.unread
			}
			of, by := opened(t, w)
			g, err := Read(t.Context(), of, by)
			if err != nil {
				t.Fatal(err)
			}
			got := "<nil>"
			if f := g.Tell(tc.fits); f != nil {
				got = fmt.Sprintf("%s: %s", f.Certainty, f.Says)
				for _, e := range f.Evidence[1:] {
					got += "; " + e.Fact
				}
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A pod alone, a group of one, and one that has all it needs are no gang that waits.
func TestWhoHasNoGang(t *testing.T) {
	for name, fill := range map[string]func(*rcatest.World){
		"in no group":    func(*rcatest.World) {},
		"a group of one": func(w *rcatest.World) { group(w, 1) },
	} {
		w := rcatest.NewWorld()
		fill(w)
		of, by := opened(t, w)
		if g, err := Read(t.Context(), of, by); g != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
}

// Members that nobody makes any more are told from those that are on their way.
func TestOverdueMembers(t *testing.T) {
	for name, row := range map[string]struct {
		ages []time.Duration
		want bool
	}{
		"all long ago":       {[]time.Duration{time.Hour, 30 * time.Minute}, true},
		"as long as it may":  {[]time.Duration{time.Hour, 20 * time.Minute}, true},
		"nearly so long":     {[]time.Duration{time.Hour, 20*time.Minute - time.Second}, false},
		"one has just come":  {[]time.Duration{time.Hour, time.Minute}, false},
		"all that there are": {[]time.Duration{time.Hour, time.Hour, time.Hour}, false},
		"none is there":      {nil, false},
	} {
		g := &Gang{Known: true, Min: 3}
		for _, age := range row.ages {
			g.members = append(g.members, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: rcatest.Noon.Add(-age)}}})
		}
		if got := g.Overdue(rcatest.Noon); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A gang cannot be whole while members do not exist or do not fit; it is torn where all exist, some
// run and the others have no room. Of a group that was not read neither is said.
func TestWhichGangsAreTorn(t *testing.T) {
	for name, tc := range map[string]struct {
		of                 Gang
		made               int
		incomplete, broken bool
	}{
		"all fit":          {Gang{Known: true, Min: 2, Fit: 2, running: 1}, 2, false, false},
		"one has no room":  {Gang{Known: true, Min: 2, Fit: 1, running: 1}, 2, true, true},
		"none runs":        {Gang{Known: true, Min: 2, Fit: 1}, 2, true, false},
		"one is not there": {Gang{Known: true, Min: 2, Fit: 1, running: 1}, 1, true, false},
		"not read":         {Gang{Fit: -1, running: 1}, 2, false, false},
	} {
		tc.of.members = make([]*corev1.Pod, tc.made)
		if incomplete, broken := tc.of.Incomplete(), tc.of.Broken(); incomplete != tc.incomplete || broken != tc.broken {
			t.Errorf("%s: incomplete %v, torn %v", name, incomplete, broken)
		}
	}
	if (*Gang)(nil).Incomplete() {
		t.Error("none is incomplete")
	}
}

// Pods are placed one after another as well as any other way where they ask the same, and
// nothing of each other.
func TestWhichPodsAreIdentical(t *testing.T) {
	apart := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	near := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}
	nodes := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	spread := []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
	for name, tc := range map[string]struct {
		edit func(a, b *corev1.Pod)
		want bool
	}{
		"alike":            {func(_, _ *corev1.Pod) {}, true},
		"by nodes":         {func(a, b *corev1.Pod) { a.Spec.Affinity, b.Spec.Affinity = nodes, nodes }, true},
		"of another shape": {func(_, b *corev1.Pod) { b.Spec.NodeSelector = map[string]string{"a": "b"} }, false},
		"apart":            {func(a, b *corev1.Pod) { a.Spec.Affinity, b.Spec.Affinity = apart, apart }, false},
		"near":             {func(a, b *corev1.Pod) { a.Spec.Affinity, b.Spec.Affinity = near, near }, false},
		"spread": {func(a, b *corev1.Pod) {
			a.Spec.TopologySpreadConstraints, b.Spec.TopologySpreadConstraints = spread, spread
		}, false},
	} {
		a, b := rcatest.NewWorld().Wait, rcatest.NewWorld().Wait
		if tc.edit(a, b); identical([]*corev1.Pod{a, b}) != tc.want {
			t.Errorf("%s: %v", name, !tc.want)
		}
	}
}
