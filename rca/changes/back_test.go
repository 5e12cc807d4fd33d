package changes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/view"
)

// odd leaves a GPU with what no entry makes.
func odd(_ *corev1.Node, g *nodeprobe.NodeGeometry) {
	g.Report.GPUs[0].Instances = g.Report.GPUs[0].Instances[:3]
}

func single(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[view.LabelMIGStrategy] = "single" }

// A layout that was applied and is gone is made again by way of the one that the GPUs have,
// where an entry makes that and who holds them may leave.
func TestLostLayoutsAreMadeAgain(t *testing.T) {
	const none, byHand = "", "by hand, medium risk: take the MIG layout of n back (by hand: "
	for name, tc := range map[string]struct {
		config, state string
		fill          func(*world)
		edits         []func(*corev1.Node, *nodeprobe.NodeGeometry)
		want          string
	}{
		"lost":                {config: "all-2g.10gb", state: "success", want: `by plan, medium risk: take n back to "all-2g.10gb", which its GPUs have lost`},
		"with a holder":       {config: "all-2g.10gb", state: "success", fill: func(w *world) { w.AddHolder("h", "n", mig1g, 0) }, want: `by plan, medium risk: take n back to "all-2g.10gb", which its GPUs have lost, evicting 1 pod`},
		"never applied":       {config: "all-2g.10gb", state: "failed", want: none},
		"still there":         {config: "all-1g.5gb", state: "success", want: none},
		"of no entry":         {config: "mine", state: "success", want: none},
		"no config is known":  {config: "all-2g.10gb", state: "success", fill: func(w *world) { w.ConfigMaps = nil }, want: none},
		"nobody can tell":     {config: "all-2g.10gb", state: "success", edits: []func(*corev1.Node, *nodeprobe.NodeGeometry){single}, want: byHand + `under strategy "single" what it advertises does not tell the layout)`},
		"what no entry makes": {config: "all-2g.10gb", state: "success", edits: []func(*corev1.Node, *nodeprobe.NodeGeometry){odd}, want: byHand + "MIG manager acts on a change of the label, and its GPUs have what no entry makes, or holders that may not be evicted)"},
		"a holder that stays": {config: "all-2g.10gb", state: "success", fill: func(w *world) { *w.AddHolder("h", "n", mig1g, 0).Spec.Priority = 1000 }, want: byHand + "MIG manager acts on a change of the label, and its GPUs have what no entry makes, or holders that may not be evicted)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Laid(tc.config, tc.state, tc.edits...)
			if tc.fill != nil {
				tc.fill(w)
			}
			c := w.bench(t, "Deployment")
			got := c.remakeLost(c.Node("n"))
			if edittest.ToldAll(got) != tc.want {
				t.Errorf("%s, want %s", edittest.ToldAll(got), tc.want)
			}
			if len(got) == 1 && !got[0].Manual && (got[0].Relayout.First != "all-1g.5gb" || got[0].Relayout.Config != "all-2g.10gb" || !slices.Equal(got[0].Relayout.Remade, []int{0})) {
				t.Errorf("%+v", got[0].Relayout)
			}
		})
	}
}

// Who asks whole GPUs waits for a layout that switches MIG off, and for no other.
func TestWhoAwaitsThatMIGIsSwitchedOff(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		asks   corev1.ResourceList
		want   bool
	}{
		"whole GPUs":            {"all-disabled", list("nvidia.com/gpu", "1"), true},
		"instances":             {"all-disabled", list(string(mig1g), "1"), false},
		"both":                  {"all-disabled", list("nvidia.com/gpu", "1", string(mig1g), "1"), false},
		"no GPU":                {"all-disabled", list("cpu", "1"), false},
		"where MIG is on":       {"all-1g.5gb", list("nvidia.com/gpu", "1"), false},
		"of an entry not there": {"mine", list("nvidia.com/gpu", "1"), false},
	} {
		w := newWorld()
		w.Asking(tc.asks)
		w.Laid(tc.config, "success")
		c := w.bench(t, "Deployment")
		if got := c.awaitsMIGOff(c.Node("n")); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Where MIG manager fails, the way back is to what the GPUs still have, else to what was in
// force before, else a person's.
func TestTheLastLayoutThatWorked(t *testing.T) {
	ran := func(runs bool, node, was, became string) knowledge.Outcome {
		return knowledge.Outcome{Runs: runs, Layouts: []knowledge.Layout{{Node: node, Was: was, Became: became}}}
	}
	broken := []func(*corev1.Node, *nodeprobe.NodeGeometry){odd}
	const byHand = "by hand, medium risk: take the MIG layout of n back (by hand: "
	const unknown = byHand + "the layout that its GPUs have is no entry of its mig-parted config, and unpend has no record of the one before)"
	back := func(config string) string {
		return fmt.Sprintf("by plan, medium risk: take n back to %q, the last layout that worked", config)
	}
	parked := func(config string) func(*corev1.Node, *nodeprobe.NodeGeometry) {
		return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			text, err := json.Marshal(diagnosis.Operation{Plan: strings.Repeat("0", 64), ID: "u", Step: "cordon", Parked: "it failed", PriorMIGConfig: config})
			if err != nil {
				t.Fatal(err)
			}
			n.Annotations = map[string]string{diagnosis.OperationAnnotation: string(text)}
		}
	}
	for name, tc := range map[string]struct {
		past  []knowledge.Outcome
		fill  func(*world)
		edits []func(*corev1.Node, *nodeprobe.NodeGeometry)
		want  string
		label string // that a person is told to write, or the plan writes
	}{
		"as the GPUs are":          {want: `by plan, low risk: take n back to "all-1g.5gb", as its GPUs are laid out now`, label: "all-1g.5gb"},
		"nothing is known":         {edits: broken, want: unknown, label: "NAME"},
		"what a plan made":         {past: []knowledge.Outcome{ran(true, "n", "all-7g.40gb", "all-3g.20gb")}, edits: broken, want: back("all-3g.20gb"), label: "all-3g.20gb"},
		"what a plan found":        {past: []knowledge.Outcome{ran(false, "n", "all-7g.40gb", "all-3g.20gb")}, edits: broken, want: back("all-7g.40gb"), label: "all-7g.40gb"},
		"it made what fails now":   {past: []knowledge.Outcome{ran(true, "n", "all-7g.40gb", "all-2g.10gb")}, edits: broken, want: back("all-7g.40gb"), label: "all-7g.40gb"},
		"the newest counts":        {past: []knowledge.Outcome{ran(true, "other", "", "all-7g.40gb"), ran(true, "n", "", "all-3g.20gb"), ran(true, "n", "", "all-7g.40gb")}, edits: broken, want: back("all-3g.20gb"), label: "all-3g.20gb"},
		"of another node":          {past: []knowledge.Outcome{ran(true, "other", "", "all-3g.20gb")}, edits: broken, want: unknown, label: "NAME"},
		"no entry any more":        {past: []knowledge.Outcome{ran(true, "n", "", "mine"), ran(true, "n", "", "all-3g.20gb")}, edits: broken, want: unknown, label: "NAME"},
		"it found what fails now":  {past: []knowledge.Outcome{ran(false, "n", "all-2g.10gb", "all-3g.20gb")}, edits: broken, want: unknown, label: "NAME"},
		"a holder that stays":      {past: []knowledge.Outcome{ran(true, "n", "", "all-3g.20gb")}, fill: func(w *world) { *w.AddHolder("h", "n", mig1g, 0).Spec.Priority = 1000 }, edits: broken, want: byHand + "the pods on its GPUs may not be evicted, or are not known)", label: "all-3g.20gb"},
		"nobody can tell":          {edits: []func(*corev1.Node, *nodeprobe.NodeGeometry){single}, want: byHand + `under strategy "single" what it advertises does not tell the layout)`, label: "NAME"},
		"an operation holds it":    {edits: []func(*corev1.Node, *nodeprobe.NodeGeometry){parked("all-7g.40gb")}, want: `by hand, medium risk: take n back to "all-7g.40gb", as it was before unpend's operation (by hand: an operation of unpend's holds the node until a person has seen to it)`, label: "all-7g.40gb"},
		"it changed no layout":     {edits: []func(*corev1.Node, *nodeprobe.NodeGeometry){parked("")}, want: `by plan, low risk: take n back to "all-1g.5gb", as its GPUs are laid out now`, label: "all-1g.5gb"},
		"it found the same label":  {edits: []func(*corev1.Node, *nodeprobe.NodeGeometry){parked("all-2g.10gb")}, want: `by plan, low risk: take n back to "all-1g.5gb", as its GPUs are laid out now`, label: "all-1g.5gb"},
		"GPUs that have no more":   {edits: []func(*corev1.Node, *nodeprobe.NodeGeometry){func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].Instances = nil }}, want: unknown, label: "NAME"},
		"with a holder who leaves": {past: []knowledge.Outcome{ran(true, "n", "", "all-3g.20gb")}, fill: func(w *world) { w.AddHolder("h", "n", mig1g, 0) }, edits: broken, want: back("all-3g.20gb") + ", evicting 1 pod", label: "all-3g.20gb"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Laid("all-2g.10gb", "failed", tc.edits...)
			if tc.fill != nil {
				tc.fill(w)
			}
			c := w.bench(t, "Deployment")
			c.Past = tc.past
			got := c.revert(c.Node("n"), diagnosis.MIGConfigFailed)
			if edittest.Told(got) != tc.want || got.Cause != diagnosis.MIGConfigFailed || got.Kind != diagnosis.RevertMIGConfig {
				t.Errorf("%s, want %s", edittest.Told(got), tc.want)
			}
			if got.Detail != nil {
				got.Detail(&got)
			}
			if !slices.ContainsFunc(got.Commands, func(s string) bool {
				return strings.HasPrefix(s, "kubectl label node n nvidia.com/mig.config="+tc.label+" ")
			}) {
				t.Errorf("%q, want label %s", got.Commands, tc.label)
			}
		})
	}
}

// A layout that is gone back to says whether the pod has room in it: what it asks of GPUs
// and of everything else, beside those that stay.
func TestRoomInTheLayoutBefore(t *testing.T) {
	const noRoom = "it takes the node out of a layout that MIG manager does not make, and schedules none: the layout has none free of what the pod asks"
	for name, tc := range map[string]struct {
		asks corev1.ResourceList
		held int
		want string
	}{
		"the last":           {list(string(mig1g), "1"), 6, ""},
		"none is left":       {list(string(mig1g), "1"), 7, noRoom},
		"as many as are":     {list(string(mig1g), "2"), 5, ""},
		"one too many":       {list(string(mig1g), "2"), 6, noRoom},
		"none of that sort":  {list(string(mig2g), "1"), 0, noRoom},
		"too much CPU":       {list(string(mig1g), "1", "cpu", "97"), 0, noRoom},
		"CPU that is held":   {list(string(mig1g), "1", "cpu", "96"), 1, noRoom},
		"CPU that is free":   {list(string(mig1g), "1", "cpu", "95"), 1, ""},
		"a whole GPU":        {list("nvidia.com/gpu", "1"), 0, noRoom},
		"nothing of the GPU": {list("cpu", "1"), 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Laid("all-2g.10gb", "failed")
			w.Wait.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: tc.asks, Limits: tc.asks}
			for i := range tc.held {
				w.AddHolder(fmt.Sprint("h", i), "n", mig1g, i).Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1")
			}
			c := w.bench(t, "Deployment")
			n := c.Node("n")
			ch := c.revert(n, diagnosis.MIGConfigFailed)
			if ch.Untestable != tc.want {
				t.Errorf("%q, want %q", ch.Untestable, tc.want)
			}
			o := n.DeepCopy()
			ch.Node(o)
			if q := o.Status.Allocatable[mig1g]; o.Labels[view.LabelMIGConfig] != "all-1g.5gb" || q.Value() != 7 {
				t.Errorf("%v, %v", o.Labels, o.Status.Allocatable)
			}
		})
	}
}
