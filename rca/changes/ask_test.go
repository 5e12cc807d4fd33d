package changes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// mixed is a node whose GPU has a 3g.20gb, a 2g.10gb and a 1g.5gb, and a whole one beside it.
func mixed(w *world) {
	w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{1}, Layouts: [][]sim.Placed{{{Profile: "3g.20gb", Start: 4}, {Profile: "2g.10gb", Start: 0}, {Profile: "1g.5gb", Start: 2}}}})
}

// Another GPU resource is asked where the node has as many of it: the nearest that is not
// smaller, else the nearest that is.
func TestAnotherGPUResource(t *testing.T) {
	const mig3g = corev1.ResourceName("nvidia.com/mig-3g.20gb")
	for name, tc := range map[string]struct {
		asks  corev1.ResourceName
		count int64
		fill  func(*world)
		want  string
	}{
		"the next above":      {mig1g, 1, mixed, "ask nvidia.com/mig-2g.10gb instead of nvidia.com/mig-1g.5gb"},
		"what is not offered": {"nvidia.com/mig-4g.20gb", 1, mixed, "ask nvidia.com/gpu instead of nvidia.com/mig-4g.20gb"},
		"the next below, for want of one above": {view.WholeGPU, 1, func(w *world) {
			mixed(w)
			w.Nodes[0].Status.Allocatable[view.WholeGPU] = list("x", "0")["x"]
		}, "ask nvidia.com/mig-3g.20gb instead of nvidia.com/gpu"},
		"what is held is none": {mig1g, 1, func(w *world) { mixed(w); w.AddHolder("h", "n", mig2g, 0) }, "ask nvidia.com/mig-3g.20gb instead of nvidia.com/mig-1g.5gb"},
		"not as many":          {mig3g, 2, mixed, ""},
		"not there at all":     {mig2g, 1, func(w *world) { w.AddNode(sim.Node{Name: "n", Layouts: [][]sim.Placed{nil}}) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tc.fill(w)
			q := list(string(tc.asks), fmt.Sprint(tc.count))
			w.Asking(q)
			c := w.bench(t, "Deployment")
			got := ""
			for _, ch := range c.changeGPURequest(c.Node("n"), diagnosis.MIGLayoutMismatch, c.Asks[0]) {
				if got, _, _ = strings.Cut(ch.Title, " ("); ch.Kind != diagnosis.ChangeRequest || ch.Cause != diagnosis.MIGLayoutMismatch {
					t.Errorf("%+v", ch)
				}
				got = strings.TrimSuffix(got, " in deployment/w")
				p := w.Wait.DeepCopy()
				ch.Pod(p)
				asked := view.PodRequests(p)
				if old := asked[tc.asks]; !old.IsZero() || len(view.AsksOf(p)) != 1 || view.AsksOf(p)[0].Count != tc.count {
					t.Errorf("%v", asked)
				}
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Fewer instances are asked only where all of the node's GPUs could never have as many.
func TestFewerInstances(t *testing.T) {
	ones := [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}
	for name, tc := range map[string]struct {
		node sim.Node
		asks string
		n    int64
		want string
	}{
		"more than there can be":     {sim.Node{Layouts: ones}, "1g.5gb", 8, "ask 7 instead of 8 nvidia.com/mig-1g.5gb (less than asked) in deployment/w"},
		"on two GPUs":                {sim.Node{GPUs: 2, Layouts: ones}, "1g.5gb", 15, "ask 7 instead of 15 nvidia.com/mig-1g.5gb (less than asked) in deployment/w"},
		"two GPUs could":             {sim.Node{GPUs: 2, Layouts: ones}, "1g.5gb", 14, ""},
		"as many as there are":       {sim.Node{Layouts: ones}, "1g.5gb", 7, ""},
		"none is free":               {sim.Node{Layouts: [][]sim.Placed{nil}}, "1g.5gb", 8, ""},
		"no GPU is partitioned":      {sim.Node{MIGOff: []int{0}}, "1g.5gb", 8, ""},
		"whole GPUs are not of them": {sim.Node{GPUs: 2, MIGOff: []int{0}}, "", 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tc.node.Name = "n"
			w.AddNode(tc.node)
			a := view.Ask{Resource: corev1.ResourceName("nvidia.com/mig-" + tc.asks), Profile: tc.asks, Count: tc.n}
			if tc.asks == "" {
				a.Resource = view.WholeGPU
			}
			w.Asking(list(string(a.Resource), fmt.Sprint(tc.n)))
			c := w.bench(t, "Deployment")
			got := c.fewerInstances(c.Node("n"), diagnosis.MIGLayoutMismatch, a)
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || got[0].Title != tc.want || got[0].Less != tc.n-7) {
				t.Errorf("%s, want %q", edittest.ToldAll(got), tc.want)
			}
		})
	}
}

// As many whole GPUs are asked as the node has, and as are free on it where those are fewer.
func TestFewerWholeGPUs(t *testing.T) {
	for name, tc := range map[string]struct {
		asks, held int
		want       []string
	}{
		"all free":              {3, 0, []string{"ask 2 instead of 3"}},
		"one is held":           {3, 1, []string{"ask 2 instead of 3", "ask 1 instead of 3"}},
		"all are held":          {3, 2, []string{"ask 2 instead of 3"}},
		"it has as many":        {2, 1, nil},
		"it has more than that": {1, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}})
			for i := range tc.held {
				w.AddHolder(fmt.Sprint("h", i), "n", view.WholeGPU, 0)
			}
			w.Asking(list("nvidia.com/gpu", fmt.Sprint(tc.asks)))
			c := w.bench(t, "Deployment")
			var got []string
			for _, ch := range c.fewerGPUs(c.Node("n")) {
				title, _, _ := strings.Cut(ch.Title, " nvidia.com")
				got = append(got, title)
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Containers that each ask for one, together more than a node has, are left for a person to tell apart.
func TestOneForEachContainer(t *testing.T) {
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", GPUs: 1, MIGOff: []int{0}})
	w.Asking(list("nvidia.com/gpu", "1"))
	second := w.Wait.Spec.Containers[0]
	second.Name = "second"
	w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, second)
	c := w.bench(t, "Deployment")
	got := c.fewerGPUs(c.Node("n"))
	want := fmt.Sprintf("ask for nvidia.com/gpu in fewer containers of deployment/w: container %s asks for 1, container second asks for 1, and the largest node has 1", w.Wait.Spec.Containers[0].Name)
	if len(got) != 1 || got[0].Title != want || got[0].Untestable == "" || got[0].Kind != diagnosis.ChangeRequest || got[0].Less != 1 {
		t.Errorf("%s, want %q", edittest.ToldAll(got), want)
	}
}

// Of what every node has, as much is asked as is free, where that is all that is lacking and
// one container asks it.
func TestLessOfTheHost(t *testing.T) {
	for name, tc := range map[string]struct {
		asks corev1.ResourceList
		edit func(*world)
		want string // empty: not at all
	}{
		"CPU":                    {list("cpu", "100"), nil, "ask for 96 cpu"},
		"CPU and memory":         {list("cpu", "100", "memory", "2Ti"), nil, "ask for 1Ti memory, 96 cpu"},
		"what is held is not":    {list("cpu", "96"), func(w *world) { w.AddHolder("h", "n", "cpu", 0, 0) }, "ask for 94 cpu"},
		"nothing is lacking":     {list("cpu", "96"), nil, ""},
		"none is free":           {list("cpu", "1"), func(w *world) { w.Nodes[0].Status.Allocatable["cpu"] = list("x", "0")["x"] }, ""},
		"a GPU is lacking too":   {list("cpu", "100", "nvidia.com/gpu", "2"), nil, ""},
		"a GPU that is there":    {list("cpu", "100", "nvidia.com/gpu", "1"), nil, "ask for 96 cpu"},
		"of two containers":      {list("cpu", "100"), func(w *world) { w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, corev1.Container{Name: "d"}) }, "ask for 96 instead of 100 cpu in container c"},
		"huge pages are no host": {list("cpu", "1", "hugepages-2Mi", "2Mi"), nil, ""},
		"with an overhead":       {list("cpu", "96"), func(w *world) { w.Wait.Spec.Overhead = list("cpu", "500m") }, "ask for 95500m cpu"},
		"which is all there is":  {list("cpu", "96"), func(w *world) { w.Wait.Spec.Overhead = list("cpu", "96") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
			w.Asking(tc.asks)
			if tc.edit != nil {
				tc.edit(w)
			}
			c := w.bench(t, "Deployment")
			lack, fits := c.Node("n").DeficitsOf(c.Wants)
			ch, ok := c.lowerRequest(c.Node("n"), lack, fits)
			if title, _, _ := strings.Cut(ch.Title, " (less than asked)"); title != tc.want || ok != (tc.want != "") {
				t.Errorf("%q, %v; want %q", title, ok, tc.want)
			}
		})
	}
}

// What a selector or an affinity asks is other: what the node has instead, or nothing of it.
func TestLabelsThatTheNodeHas(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Labels: map[string]string{"zone": "b", "memory": "40960"}}}
	for _, tc := range []struct {
		key    string
		op     corev1.NodeSelectorOperator
		values []string
		in     bool // the selector
		name   bool
		want   string
	}{
		{"zone", corev1.NodeSelectorOpIn, []string{"a"}, true, false, "zone=b"},
		{"zone", corev1.NodeSelectorOpIn, []string{"a"}, false, false, "zone=b too"},
		{"pool", corev1.NodeSelectorOpIn, []string{"a"}, true, false, "no pool"},
		{"pool", corev1.NodeSelectorOpIn, []string{"a"}, false, false, "no pool"},
		{"zone", corev1.NodeSelectorOpNotIn, []string{"b"}, false, false, "no zone"},
		{"zone", corev1.NodeSelectorOpDoesNotExist, nil, false, false, "no zone"},
		{"metadata.name", corev1.NodeSelectorOpIn, []string{"gpu-2"}, false, true, "metadata.name=gpu-1"},
	} {
		m := terms.MissedLabel{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: tc.key, Operator: tc.op, Values: tc.values}, Key: tc.key, InSelector: tc.in, ByName: tc.name}
		if got := labelInstead(m, n); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc, got, tc.want)
		}
	}
	missed := []terms.MissedLabel{{Key: "zone", InSelector: true}, {Key: "pool", InSelector: true}, {Key: "memory"}}
	from := map[string]string{"zone": "a", "pool": "x", "team": "y", "memory": "1"}
	selector, patch := otherSelector(from, n, missed)
	if fmt.Sprint(selector) != "map[memory:1 team:y zone:b]" || fmt.Sprint(patch) != "map[pool:<nil> zone:b]" || from["zone"] != "a" {
		t.Errorf("%v by %v, of %v", selector, patch, from)
	}
}

// An affinity is widened in the term that comes nearest, from its end: what is left out of it
// moves what comes behind.
func TestAffinityIsWidened(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Labels: map[string]string{"zone": "b"}}}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	at := func(term, i int, r corev1.NodeSelectorRequirement) terms.MissedLabel {
		return terms.MissedLabel{NodeSelectorRequirement: r, Key: r.Key, Term: term, At: i}
	}
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	term := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	pool, zone, team := in("pool", "x"), in("zone", "a"), in("team", "y")
	for name, tc := range map[string]struct {
		from, want *corev1.Affinity
		missed     []terms.MissedLabel
	}{
		"another value too":      {required(term(zone, team)), required(term(in("zone", "a", "b"), team)), []terms.MissedLabel{at(0, 0, zone)}},
		"the second term":        {required(term(team), term(zone)), required(term(team), term(in("zone", "a", "b"))), []terms.MissedLabel{at(1, 0, zone)}},
		"two of three":           {required(term(pool, zone, team)), required(term(in("zone", "a", "b"))), []terms.MissedLabel{at(0, 0, pool), at(0, 1, zone), at(0, 2, team)}},
		"nothing is left":        {required(term(pool, team)), &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}, []terms.MissedLabel{at(0, 0, pool), at(0, 1, team)}},
		"not the selector's":     {required(term(zone)), required(term(in("zone", "a", "b"))), []terms.MissedLabel{{Key: "zone", InSelector: true}, at(0, 0, zone)}},
		"the name is of another": {required(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", "gpu-2")}}), required(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", "gpu-1")}}), []terms.MissedLabel{{NodeSelectorRequirement: in("metadata.name", "gpu-2"), Key: "metadata.name", ByName: true}}},
	} {
		before := tc.from.String()
		if got := widened(tc.from, n, tc.missed); got.String() != tc.want.String() || tc.from.String() != before {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// GPUs that strategy single finds in several layouts are laid out alike by the entries that
// re-make the fewest, and of these by the profile that there is most of.
func TestGPUsAreLaidOutAlike(t *testing.T) {
	ones, twos, sevens := sim.All("A100-40GB", "1g.5gb"), sim.All("A100-40GB", "2g.10gb"), sim.All("A100-40GB", "7g.40gb")
	mixture := []sim.Placed{{Profile: "1g.5gb", Start: 0}, {Profile: "1g.5gb", Start: 1}, {Profile: "2g.10gb", Start: 2}, {Profile: "3g.20gb", Start: 4}} // all-balanced
	for name, tc := range map[string]struct {
		layouts [][]sim.Placed
		edit    func(*corev1.Node, *nodeprobe.NodeGeometry)
		alike   bool // as the node's product says
		want    string
	}{
		"the most of them":  {[][]sim.Placed{ones, sevens, ones}, nil, false, `by hand, medium risk: lay all GPUs of n out alike, by "all-1g.5gb"`},
		"as many of each":   {[][]sim.Placed{sevens, ones}, nil, false, `by hand, medium risk: lay all GPUs of n out alike, by "all-1g.5gb"`},
		"the fewest":        {[][]sim.Placed{sevens, sevens, ones}, nil, false, `by hand, medium risk: lay all GPUs of n out alike, by "all-7g.40gb"`},
		"the label is that": {[][]sim.Placed{twos, ones, ones}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[view.LabelMIGConfig] = "all-1g.5gb" }, false, `by hand, medium risk: lay all GPUs of n out alike, by "all-2g.10gb"`},
		"a sick one":        {[][]sim.Placed{ones, sevens}, func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].Healthy = false }, false, "by hand, medium risk: lay all GPUs of n out alike (nobody knows what MIG manager makes of a sick GPU: GPU 0 of n is unhealthy)"},
		"one that is whole": {[][]sim.Placed{ones, sevens, nil}, func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[2].MIG = &nodeprobe.MIGMode{} }, false, "by hand, medium risk: lay all GPUs of n out alike (nobody knows which layout costs least: nothing reports what all GPUs of n have, and who is on them)"},
		"nothing reports":   {[][]sim.Placed{ones, sevens}, func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.Source = nodeprobe.SourceLabels }, false, "by hand, medium risk: lay all GPUs of n out alike (nobody knows which layout costs least: nothing reports what all GPUs of n have, and who is on them)"},
		"none is better":    {[][]sim.Placed{sevens, sim.All("A100-40GB", "4g.20gb")}, nil, false, `by hand, medium risk: lay all GPUs of n out alike, by "all-4g.20gb"; by hand, medium risk: lay all GPUs of n out alike, by "all-7g.40gb"`},
		"not a mixed one":   {[][]sim.Placed{mixture, mixture[:3]}, nil, false, `by hand, medium risk: lay all GPUs of n out alike, by "all-1g.5gb"`},
		"they are alike":    {[][]sim.Placed{ones, ones}, nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			edits := []func(*corev1.Node, *nodeprobe.NodeGeometry){func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
				if n.Labels["nvidia.com/gpu.product"] += "-MIG-INVALID"; tc.alike {
					n.Labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
				}
			}}
			if tc.edit != nil {
				edits = append(edits, tc.edit)
			}
			w.AddNode(sim.Node{Name: "n", GPUs: len(tc.layouts), Strategy: "single", Config: "mine", Layouts: tc.layouts}, edits...)
			c := w.bench(t, "Deployment")
			if got := edittest.ToldAll(c.uniform(c.Node("n"))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
