package changes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Another priority could be what a pod lacks where somebody holds what it asks, and nothing
// of its own keeps it from all nodes.
func TestWhoMayBeRaised(t *testing.T) {
	held := []diagnosis.NodeBlockers{{Name: "n", Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Cause: diagnosis.GPUsInUse}}}}
	for name, tc := range map[string]struct {
		kind   string
		judged []diagnosis.NodeBlockers
		edit   func(*world, *Bench)
		want   bool
	}{
		"GPUs are held":            {"Deployment", held, nil, true},
		"instances are":            {"Job", []diagnosis.NodeBlockers{{Name: "n", Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Cause: diagnosis.MIGInstancesInUse}}}}, nil, true},
		"preemption is blocked":    {"Pod", []diagnosis.NodeBlockers{{Name: "m"}, {Name: "n", Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Cause: diagnosis.PreemptionBlocked}}}}, nil, true},
		"nothing is":               {"Deployment", []diagnosis.NodeBlockers{{Name: "n", Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Cause: diagnosis.UntoleratedTaint}}}}, nil, false},
		"of a ReplicaSet":          {"ReplicaSet", held, nil, false},
		"it does not exist":        {"Deployment", held, func(_ *world, c *Bench) { c.Unborn = true }, false},
		"something of its own":     {"Deployment", held, func(_ *world, c *Bench) { c.Own = []causes.PodRule{{}} }, false},
		"something beside":         {"Deployment", held, func(_ *world, c *Bench) { c.Own = []causes.PodRule{{Aside: true}} }, true},
		"one of a gang":            {"Deployment", held, func(w *world, c *Bench) { w.Look(t, c.Case) }, false},
		"another scheduler's word": {"Deployment", held, func(_ *world, c *Bench) { c.Pod.Spec.SchedulerName = "volcano" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if name == "one of a gang" {
				w.Wait.Labels["scheduling.x-k8s.io/pod-group"] = "g"
			}
			c := w.bench(t, tc.kind)
			c.Judged = tc.judged
			if tc.edit != nil {
				tc.edit(w, c)
			}
			if got := c.Raisable(); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// A wait for what the scheduler does by itself says whether it breaks a budget.
func TestTheSchedulerByItself(t *testing.T) {
	w := newWorld()
	w.Wholes("n")
	c := w.bench(t, "Deployment")
	c.Judged = []diagnosis.NodeBlockers{{Name: "m"}, {Name: "n", Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Cause: diagnosis.GPUsInUse}}}}
	for violations, want := range map[int]string{0: "", 1: ", which breaks a disruption budget"} {
		ch := c.ByItself(whatif.Preemption{Node: "n", Victims: w.Pods[1:], Violations: violations})
		if edittest.Told(ch) != "by hand, none risk: the scheduler preempts a/h-n on n by itself"+want || ch.Cause != c.ShortOn(c.Node("n")) {
			t.Errorf("%s, for %s", edittest.Told(ch), ch.Cause)
		}
	}
}

// A constraint is changed in the template that the pod has it from; where the template has
// none a person sees who sets it.
func TestWhoseSpreadItIs(t *testing.T) {
	spread := func(key string, skew int32, unmet corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: unmet}
	}
	zone, wish := spread("zone", 1, corev1.DoNotSchedule), spread("zone", 1, corev1.ScheduleAnyway)
	wider := spread("zone", 2, corev1.DoNotSchedule)
	host := spread("host", 1, corev1.DoNotSchedule)
	for name, tc := range map[string]struct {
		template, pod []corev1.TopologySpreadConstraint
		to            corev1.TopologySpreadConstraint
		manual        bool
		want          []corev1.TopologySpreadConstraint
	}{
		"wider":                {[]corev1.TopologySpreadConstraint{host, zone}, []corev1.TopologySpreadConstraint{host, zone}, wider, false, []corev1.TopologySpreadConstraint{host, wider}},
		"a wish":               {[]corev1.TopologySpreadConstraint{zone, host}, []corev1.TopologySpreadConstraint{zone, host}, wish, false, []corev1.TopologySpreadConstraint{wish, host}},
		"a wish that is there": {[]corev1.TopologySpreadConstraint{zone, wish}, []corev1.TopologySpreadConstraint{zone, wish}, wish, false, []corev1.TopologySpreadConstraint{wish}},
		"wider, beside a wish": {[]corev1.TopologySpreadConstraint{zone, wish}, []corev1.TopologySpreadConstraint{zone, wish}, wider, false, []corev1.TopologySpreadConstraint{wider, wish}},
		"somebody else's":      {nil, []corev1.TopologySpreadConstraint{zone}, wider, true, []corev1.TopologySpreadConstraint{wider}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Wait.Spec.TopologySpreadConstraints = tc.template
			w.Deployed()
			w.Wait.Spec.TopologySpreadConstraints = tc.pod
			ch := w.bench(t, "Deployment").spreadBy("x", []corev1.TopologySpreadConstraint{tc.to}, 1)
			p := w.Wait.DeepCopy()
			ch.Pod(p)
			if fmt.Sprint(p.Spec.TopologySpreadConstraints) != fmt.Sprint(tc.want) || ch.Manual != tc.manual || (len(ch.Actions) == 0) != tc.manual {
				t.Errorf("manual %v: %v, want %v", ch.Manual, p.Spec.TopologySpreadConstraints, tc.want)
			}
			if fmt.Sprint(w.Wait.Spec.TopologySpreadConstraints) != fmt.Sprint(tc.pod) {
				t.Error("the pod that waits was changed")
			}
		})
	}
}

// An affinity that the template has not is somebody else's too.
func TestWhosePodAffinityItIs(t *testing.T) {
	for _, theirs := range []bool{false, true} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"zone": "a"}})
		if theirs {
			w.Deployed()
		}
		w.Wait.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}}}}
		if !theirs {
			w.Deployed()
		}
		c := w.bench(t, "Deployment")
		ch, ok := c.preferAffinity(c.Node("n"))
		if theirs { // to change the template takes nothing from its pods
			if !ok || ch.Kind != diagnosis.Manual || ch.Pod != nil || ch.Untestable == "" || !strings.HasSuffix(ch.Title, "which deployment/w does not have") {
				t.Errorf("somebody else's: %s %s", ch.Kind, ch.Title)
			}
			continue
		}
		if !ok || ch.Manual || len(ch.Commands) != 1 || !strings.HasPrefix(ch.Commands[0], "kubectl -n a patch deployment/w ") {
			t.Errorf("its own: %q", ch.Commands)
		}
		p := w.Wait.DeepCopy()
		ch.Pod(p)
		if a := p.Spec.Affinity.PodAffinity; len(a.RequiredDuringSchedulingIgnoredDuringExecution) != 0 || len(a.PreferredDuringSchedulingIgnoredDuringExecution) != 1 || a.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight != 100 {
			t.Errorf("%s", a)
		}
	}
}

// A selector that the template has not is given to the pod by somebody else: the pod is made again,
// and the template not changed for it.
func TestWhoseSelectorItIs(t *testing.T) {
	for _, theirs := range []bool{false, true} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"zone": "a"}})
		if theirs {
			w.Deployed()
		}
		w.Wait.Spec.NodeSelector = map[string]string{"zone": ""}
		if !theirs {
			w.Deployed()
		}
		c := w.bench(t, "Deployment")
		got := c.fixSelector(c.Node("n"))
		want, title := diagnosis.FixSelector, "select zone=a in deployment/w"
		if theirs {
			want, title = diagnosis.Manual, `see who gives its pods the selector zone="", which deployment/w does not have, and have the pod made again`
		}
		if len(got) != 1 || got[0].Kind != want || got[0].Title != title || theirs != (got[0].Untestable != "") {
			t.Errorf("somebody else's %v: %+v", theirs, got)
		}
	}
}

// Who stands in the way of a pod that stays apart may be moved, unless one of them may not
// leave or is elsewhere in the same place.
func TestWhoStandsInTheWay(t *testing.T) {
	for name, tc := range map[string]struct {
		holders []string // by the node they are on
		edit    func(*world)
		want    string
	}{
		"one":             {[]string{"n"}, func(*world) {}, "MovePods move a/h0 off n, away from what may not be together; FixSelector"},
		"nobody":          {nil, func(*world) {}, ""},
		"one that stays":  {[]string{"n"}, func(w *world) { *w.Pods[1].Spec.Priority = 1 }, "FixSelector"},
		"one next door":   {[]string{"m"}, func(*world) {}, "FixSelector"},
		"here and there":  {[]string{"n", "m"}, func(*world) {}, "FixSelector"},
		"in another zone": {[]string{"o"}, func(*world) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for node, zone := range map[string]string{"n": "a", "m": "a", "o": "b"} {
				w.AddNode(sim.Node{Name: node, Labels: map[string]string{"zone": zone}})
			}
			w.Wait.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}}}}
			w.Deployed()
			for i, node := range tc.holders {
				w.AddHolder(fmt.Sprint("h", i), node, "cpu", 0).Labels["app"] = "x"
			}
			tc.edit(w)
			c := w.bench(t, "Deployment")
			var got []string
			for _, ch := range c.resolveAffinity(c.Node("n")) {
				if got = append(got, string(ch.Kind)); ch.Kind == diagnosis.MovePods {
					got[len(got)-1] += " " + ch.Title
				}
			}
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// What a plan does to a node, and the commands for it, say all of a layout, and no more.
func TestStepsOfALayout(t *testing.T) {
	w := newWorld()
	w.Laid("all-2g.10gb", "success")
	v := w.AddHolder("h", "n", mig1g, 0)
	c := w.bench(t, "Deployment")
	n := c.Node("n")
	const cordon, evict, set, wait, verify = "cordon n", "evict a/h", "set nvidia.com/mig.config=to", "wait for MIG manager", "verify the layout"
	const first, add = "set nvidia.com/mig.config=before, which its GPUs have: MIG manager acts on a change of the label", "add entry to to configmap/c"
	base := relayout.Way{Node: n, Config: "to", Now: c.Cluster.ClassOf(n).Layouts, Remade: []int{0}}
	with := func(edit func(*relayout.Way)) relayout.Way {
		r := base
		edit(&r)
		return r
	}
	for name, tc := range map[string]struct {
		r    relayout.Way
		want []string
	}{
		"the label alone":   {base, []string{cordon, set, wait, verify}},
		"somebody leaves":   {with(func(r *relayout.Way) { r.Victims = []*corev1.Pod{v} }), []string{cordon, evict, set, wait, verify}},
		"by way of another": {with(func(r *relayout.Way) { r.First = "before" }), []string{cordon, first, set, wait, verify}},
		"an entry of its own": {with(func(r *relayout.Way) {
			r.Into = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "c", UID: "u"}}
		}), []string{cordon, add, set, wait, verify}},
		"with MIG switched on": {with(func(r *relayout.Way) { r.Mode = &view.ModeChange{} }), []string{cordon, set, wait + " (it resets the GPUs, or reboots the node)", verify}},
	} {
		var ch edit.Change
		detail(&tc.r, n, &ch)
		if got := ch.Steps[:len(ch.Steps)-1]; !slices.Equal(got, tc.want) || !strings.HasPrefix(ch.Steps[len(ch.Steps)-1], "uncordon n, unless somebody else") {
			t.Errorf("%s: %q, want %q", name, ch.Steps, tc.want)
		}
		a := ch.Actions[0]
		if len(ch.Actions) != 1 || a.Verb != diagnosis.VerbRelayout || a.Target.Name != "n" || a.Relayout.Config != "to" || a.Relayout.First != tc.r.First || len(a.Relayout.Victims) != len(tc.r.Victims) || (a.Relayout.ConfigMap != nil) != (tc.r.Into != nil) {
			t.Errorf("%s: %+v", name, ch.Actions)
		}
	}
}

// Of several alternatives the title says which one is made to fit, and that none is left where what is missed was all that one of them asks.
func TestWhichAlternativeIsWidened(t *testing.T) {
	in := func(key string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{"x"}}
	}
	for label, want := range map[string]string{
		"zone": "by plan, medium risk: select zone=b too (alternative 2 of 2) in pod/w",
		"rack": "by plan, medium risk: select no zone, and none of the 2 alternatives in pod/w",
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{label: "b"}})
		w.Wait.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{in("pool")}}, {MatchExpressions: []corev1.NodeSelectorRequirement{in("zone")}}}}}}
		c := w.bench(t, "Pod")
		got := c.selecting(c.Node("n"), []terms.MissedLabel{{NodeSelectorRequirement: in("zone"), Key: "zone", Term: 1}})
		if edittest.ToldAll(got) != want {
			t.Errorf("%s: %s, want %s", label, edittest.ToldAll(got), want)
		}
	}
}
