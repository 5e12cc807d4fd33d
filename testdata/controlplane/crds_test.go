package controlplane

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
)

// full is a report with every field.
func full() *nodeprobe.NodeGeometry {
	geo := sim.Node{Name: "full", Model: a100, GPUs: 2, MIGOff: []int{1}, Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}, {Profile: "3g.20gb", Start: 4}}}}.Geometry(time.Unix(1795000000, 0).UTC())
	geo.Report.GPUs[0].Instances[0].Holder = &nodeprobe.Holder{Namespace: "a", Pod: "b", Container: "c"}
	geo.Report.GPUs[0].Instances[1].Holder = &nodeprobe.Holder{Unknown: true}
	geo.Report.GPUs[1].Holders = []nodeprobe.Holder{{Namespace: "a", Pod: "d", Container: "c"}, {Namespace: "a", Pod: "e", Container: "c"}}
	return geo
}

// Nothing of the Go type is pruned by the schema.
func TestReportSurvivesTheServer(t *testing.T) {
	c, want := shared.Get(t), full()
	c.AddGeometry(t, want)
	u, err := c.Dynamic().Resource(nodeprobe.Resource).Get(t.Context(), want.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got nodeprobe.NodeGeometry
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Report, got.Report); diff != "" {
		t.Errorf("a report was changed on its way (-sent +read):\n%s", diff)
	}
}

func TestReportsThatAreRefused(t *testing.T) {
	c := shared.Get(t)
	type report = nodeprobe.NodeGeometry
	for _, test := range []struct {
		name, says string
		spoil      func(*report)
	}{
		{"size 0", "report.gpus[0].instances[0].size", func(g *report) { g.Report.GPUs[0].Instances[0].Size = 0 }},
		{"start below 0", "report.gpus[0].instances[0].start", func(g *report) { g.Report.GPUs[0].Instances[0].Start = -1 }},
		{"unknown source", `"x": supported values: "nvml", "dra", "labels"`, func(g *report) { g.Report.Source = "x" }},
		{"an index twice", "Duplicate value", func(g *report) { g.Report.GPUs[1].Index = 0 }},
		{"a profile twice", "Duplicate value", func(g *report) {
			g.Report.GPUs[0].Profiles = append([]nodeprobe.Profile{g.Report.GPUs[0].Profiles[0]}, g.Report.GPUs[0].Profiles...)
		}},
		{"instances on one slice", "must not share a memory slice", func(g *report) { g.Report.GPUs[0].Instances[0].Start = 7 }},
		{"a holder without a name", "a holder is a pod of a namespace, or unknown", func(g *report) { g.Report.GPUs[0].Instances[0].Holder.Pod = "" }},
		{"no holder known or unknown", "a holder is a pod of a namespace, or unknown", func(g *report) { g.Report.GPUs[1].Holders[0] = nodeprobe.Holder{} }},
		{"no uuid", "report.gpus[0].uuid", func(g *report) { g.Report.GPUs[0].UUID = "" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			geo := full()
			test.spoil(geo)
			u, err := sim.Unstructured(geo)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Dynamic().Resource(nodeprobe.Resource).Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want one that says %q", err, test.says)
			}
		})
	}
}

// Labels tell how many instances there are, not where.
func TestReportFromLabelsHasNoPositions(t *testing.T) {
	c, geo := shared.Get(t), full()
	geo.Name, geo.Report.Source = "labels", nodeprobe.SourceLabels
	for i := range geo.Report.GPUs[0].Instances {
		geo.Report.GPUs[0].Instances[i].Start = 0
	}
	c.AddGeometry(t, geo)
}
