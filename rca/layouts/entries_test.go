package layouts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// mine has MIG manager's config have one entry, of that name.
func mine(rules string) func(*rcatest.World) {
	return func(w *rcatest.World) {
		w.ConfigMaps[0].Data = map[string]string{"config.yaml": "version: v1\nmig-configs:\n  mine: [" + rules + "]\n"}
	}
}

// An entry cannot be where it wants of a GPU that it is about what has no legal positions; a rule
// that switches MIG off, or is for other GPUs or boards, wants nothing of it.
func TestEntriesThatNoGPUCanHave(t *testing.T) {
	const invalid = "invalid, proven: mig.config \"mine\" cannot exist on NVIDIA A100-SXM4-40GB"
	const two = "mig-enabled: true, mig-devices: {7g.40gb: 2}}"
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		asks string
		want string
	}{
		"more than there can be":     {mine("{devices: all, " + two), mig2, invalid},
		"as much as there can be":    {mine("{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}"), mig2, ""},
		"of this GPU":                {mine("{devices: [0], " + two), mig2, invalid},
		"of another GPU":             {mine("{devices: [1], " + two), mig2, ""},
		"in its second rule":         {mine("{devices: [1], " + two + ", {devices: [0], " + two), mig2, invalid},
		"MIG is off by it":           {mine("{devices: all, mig-enabled: false, mig-devices: {7g.40gb: 2}}"), mig2, ""},
		"for another board":          {mine("{device-filter: [x], devices: all, mig-enabled: true, mig-devices: {1g.6gb: 9}}"), mig2, ""},
		"for such a board":           {mine("{device-filter: [x], devices: all, " + two), mig2, invalid},
		"another board's, for all":   {mine("{devices: all, mig-enabled: true, mig-devices: {1g.6gb: 4}}"), mig2, invalid},
		"what is asked is there":     {mine("{devices: all, " + two), mig1, ""},
		"without a report":           {func(w *rcatest.World) { mine("{devices: all, " + two)(w); blind(w) }, mig2, ""},
		"of a config that is unread": {func(w *rcatest.World) { w.ConfigMaps = nil }, mig2, ""},
		"of an entry that is missing": {func(w *rcatest.World) {
			w.ConfigMaps[0].Data = map[string]string{"config.yaml": "version: v1\nmig-configs:\n  other: [{devices: all, " + two + "]\n"}
		}, mig2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for line := range strings.Lines((row{ones, edits{label(view.LabelMIGConfig, "mine")}, nil, tc.asks, 1, ""}).told(t, tc.fill)) {
				if strings.HasPrefix(line, "invalid") {
					got = strings.TrimSpace(line)
				}
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A layout is lost that the entry makes on such a board: not one that is switched off, for another
// board, or of none.
func TestWhatAnEntryMakes(t *testing.T) {
	for name, tc := range map[string]struct {
		rules string
		lost  bool
	}{
		"it makes them":         {"{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}", true},
		"among others":          {"{devices: [0], mig-enabled: false}, {devices: [1], mig-enabled: true, mig-devices: {2g.10gb: 1, 1g.5gb: 1}}", true},
		"for such a board":      {"{device-filter: [x], devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}", true},
		"for another board":     {"{device-filter: [x], devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7, 1g.6gb: 4}}", false},
		"it is switched off":    {"{devices: all, mig-enabled: false, mig-devices: {1g.5gb: 7}}", false},
		"none of them":          {"{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 0, 2g.10gb: 1}}", false},
		"others than are asked": {"{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}", false},
	} {
		r := row{sim.Node{Name: "n", Config: "mine"}, edits{has(mig1, "0"), written(view.LabelMIGState, time.Hour), up(time.Minute)}, nil, mig1, 1, ""}
		if got := r.told(t, blind, mine(tc.rules)); strings.Contains(got, "lost, likely") != tc.lost {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A position that is told to be unheld comes with who does not hold it: the instances there, and
// no others.
func TestUnheldPositionsAreClaimed(t *testing.T) {
	w := rcatest.NewWorld()
	w.AddNode(ones)
	w.AddHolder("h", "n", mig1, 6)
	w.Asking(rcatest.List(mig2, "1"))
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	f := LayoutMismatch(v, v.Nodes["n"], &Short{Ask: view.AsksOf(w.Wait)[0]})
	var got []string
	for _, k := range f.Evidence[0].Claims {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", k.Path, k.Op, k.Value)))
	}
	const at = "report.gpus[index=0].instances"
	want := []string{"report.gpus[index=0] exists", "count(" + at + ") = 7", at + "[start=4].profile = 1g.5gb", at + "[start=4].holder absent", at + "[start=5].profile = 1g.5gb", at + "[start=5].holder absent", "report.gpus[index=0].profiles[name=2g.10gb].starts = 4"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A report without a GPU says of none that it is partitioned.
func TestAnEmptyReport(t *testing.T) {
	none := func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs = nil }
	if got := (row{sim.Node{Name: "n"}, edits{none}, nil, view.WholeGPU, 1, ""}).told(t); got != "" {
		t.Error(got)
	}
}
