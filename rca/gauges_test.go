package rca_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/capacity"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

// report is one A100-40 with 1g instances at starts 0, 1 and 5 held, the rest empty.
func report(node string, at time.Time) *nodeprobe.NodeGeometry {
	n := sim.Node{Name: node, Model: "A100-40GB", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}, {Profile: "1g.5gb", Start: 1}, {Profile: "1g.5gb", Start: 5}}}}
	geo := n.Geometry(at)
	for i := range geo.Report.GPUs[0].Instances {
		geo.Report.GPUs[0].Instances[i].Holder = &nodeprobe.Holder{Namespace: "a", Pod: fmt.Sprint("p", i)}
	}
	return geo
}

func TestGauges(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	g := capacity.NewGauges(func() time.Time { return now })
	want := func(text string) {
		t.Helper()
		var lines []string
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		got := map[string]bool{}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(g)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetValue())
				}
				got[fmt.Sprintf("%s %s %.4g", strings.TrimPrefix(f.GetName(), "unpend_mig_"), strings.Join(labels, ","), m.GetGauge().GetValue())] = true
			}
		}
		for _, line := range lines {
			if !got[line] {
				t.Errorf("%q is not told; told is %v", line, got)
			}
		}
	}
	g.Set(report("gpu-1", now))
	// 5 of 8 slices are free; a 3g needs 0-3 or 4-7, so none can be placed.
	want(`
		free_slices  5
		placeable_instances 1g.5gb 4
		unusable_slices 1g.5gb 1
		placeable_instances 2g.10gb 1
		unusable_slices 2g.10gb 3
		placeable_instances 3g.20gb 0
		unusable_slices 3g.20gb 5
		gpus known 1
		gpus unknown 0`)

	// Weighed by what is asked for.
	asks := func(id, resource string) {
		g.Asked(incident.Incident{ID: id, Requests: map[string]string{resource: "2", "cpu": "1"}})
	}
	for i := range 3 {
		asks(fmt.Sprint("gpu-", i), "nvidia.com/mig-1g.5gb")
	}
	asks("gpu-0", "nvidia.com/mig-1g.5gb") // told again
	asks("gpu-4", "nvidia.com/mig-3g.20gb")
	want("fragmentation_ratio  0.4") // (3/4 × 1 + 1/4 × 5) / 5
	now = now.Add(25 * time.Hour)
	asks("gpu-4", "nvidia.com/mig-3g.20gb")
	g.Set(report("gpu-1", now))
	want("fragmentation_ratio  1")

	// The newest report of a node stands; one that is too old is unknown, not free.
	g.Set(report("gpu-2", now.Add(-4*time.Minute)))
	want("free_slices  10\ngpus known 2")
	now = now.Add(2 * time.Minute)
	want("free_slices  5\ngpus known 1\ngpus unknown 1")
	g.Set(report("gpu-2", now))
	want("free_slices  10\ngpus known 2\ngpus unknown 0")
	g.Set(report("gpu-3", now.Add(-time.Hour)))
	want("free_slices  10\ngpus known 2\ngpus unknown 1")
	g.Delete("gpu-3")
	g.Delete("gpu-1")
	want("free_slices  5\ngpus known 1\ngpus unknown 0")

	// Each pool of nodes has its own sums; a node that moves takes its GPUs along.
	of := func(node, key, pool string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{key: pool}}}
	}
	want("pool_free_slices  5\npool_placeable_instances ,2g.10gb 1")
	g.SetNode(of("gpu-2", "cloud.google.com/gke-nodepool", "a100"))
	g.SetNode(of("gpu-5", "karpenter.sh/nodepool", "burst"))
	g.Set(report("gpu-5", now))
	want("free_slices  10\npool_free_slices a100 5\npool_free_slices burst 5\npool_unusable_slices burst,3g.20gb 5\npool_fragmentation_ratio burst 1")
	g.SetNode(of("gpu-5", "cloud.google.com/gke-nodepool", "a100"))
	want("free_slices  10\npool_free_slices a100 10\npool_placeable_instances a100,2g.10gb 2")
	g.Delete("gpu-5")
	g.DeleteNode("gpu-2")
	want("free_slices  5\npool_free_slices  5")

	// A report that cannot be is unknown.
	broken := report("gpu-4", now)
	broken.Report.GPUs[0].Instances[0].Start = 7
	g.Set(broken)
	want("free_slices  5\ngpus known 1\ngpus unknown 1")

	// What is on a sick GPU is nobody's, and neither is a node that somebody has taken.
	sick := report("gpu-5", now)
	sick.Report.GPUs[0].Healthy = false
	g.Set(sick)
	want("free_slices  5\ngpus known 1\ngpus unknown 1\ngpus unhealthy 1\ngpus taken 0")
	node := func(name, mark string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if mark != "" {
			n.Annotations = map[string]string{diagnosis.OperationAnnotation: mark}
		}
		return n
	}
	g.SetNode(node("gpu-2", `{"op":"x","id":"y","parked":"it failed"}`))
	g.SetNode(node("gpu-5", ""))
	want("free_slices  0\ngpus known 0\ngpus unknown 1\ngpus unhealthy 1\ngpus taken 1")
	g.Set(report("gpu-2", now)) // reported while it is parked
	want("free_slices  0\ngpus known 0\ngpus taken 1")
	g.SetNode(node("gpu-2", ""))
	want("free_slices  5\ngpus known 1\ngpus unknown 1\ngpus unhealthy 1\ngpus taken 0")
	g.SetNode(node("gpu-2", "mine"))
	want("free_slices  0\ngpus taken 1")
	g.DeleteNode("gpu-2")
	g.Delete("gpu-5")
	want("free_slices  5\ngpus known 1\ngpus unhealthy 0\ngpus taken 0")
	if problems, err := testutil.CollectAndLint(g); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// A scrape does the same work whatever the number of GPUs.
func TestScrapesDoNotGrow(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	work := func(nodes int) float64 {
		g := capacity.NewGauges(func() time.Time { return now })
		for i := range nodes {
			g.Set(report(fmt.Sprint("gpu-", i), now))
		}
		ch := make(chan prometheus.Metric, 1000)
		return testing.AllocsPerRun(20, func() {
			g.Collect(ch)
			for len(ch) > 0 {
				<-ch
			}
		})
	}
	if few, many := work(10), work(2000); few != many {
		t.Errorf("a scrape allocates %v times with 10 nodes and %v with 2,000", few, many)
	}
}
