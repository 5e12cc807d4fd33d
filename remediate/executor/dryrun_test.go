package executor

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// A dry run sends every write to the API server and changes nothing.
func TestDryRunChangesNothing(t *testing.T) {
	wrong := func(s corev1.PodSpec) corev1.PodSpec {
		s.NodeSelector = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
		return s
	}
	for _, tc := range []struct {
		name  string
		make  func(*testing.T, *cell)
		kinds []diagnosis.FixKind
	}{
		{"repartition", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1)
			c.deployment(t, "inference", 3, spec("1g.5gb", ""))
			c.running(t, "inference", 3)
			c.job(t, spec("2g.10gb", ""))
		}, []diagnosis.FixKind{diagnosis.RepartitionGPU}},
		{"evict", func(t *testing.T, c *cell) {
			node := c.gpuNode(t, 1)
			c.deployment(t, "inference", 7, on(node, spec("1g.5gb", "")))
			c.running(t, "inference", 7)
			c.job(t, spec("1g.5gb", ""))
		}, []diagnosis.FixKind{diagnosis.EvictPods}},
		{"recreate", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1)
			c.job(t, wrong(spec("1g.5gb", "")))
		}, []diagnosis.FixKind{diagnosis.FixSelector}},
		{"patch", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1)
			c.deployment(t, "serving", 1, wrong(spec("1g.5gb", "")))
		}, []diagnosis.FixKind{diagnosis.FixSelector}},
		{"uncordon", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1, func(n *sim.Node) { n.Cordoned = true })
			c.job(t, spec("1g.5gb", ""))
		}, []diagnosis.FixKind{diagnosis.UncordonNode}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCell(t)
			tc.make(t, c)
			c.deps.DryRun = true
			d, f := c.finds(t, tc.kinds...)
			before := c.versions(t)
			if out, err := c.apply(t, d, f); err != nil || out.Pod != "" || out.Evicted != 0 {
				t.Errorf("outcome %+v, %v", out, err)
			}
			if after := c.versions(t); !slices.Equal(before, after) {
				t.Errorf("before %v\nafter  %v", before, after)
			}
			for _, w := range c.writes(t) { // these two say in their body that they are dry
				if w.resource != "pods/eviction" && w.verb != "delete" {
					t.Errorf("written: %+v", w)
				}
			}
			c.sentDry(t)
		})
	}
}

// versions lists what exists with its resourceVersion.
func (c *cell) versions(t *testing.T) []string {
	t.Helper()
	var out []string
	add := func(kind string, o metav1.Object) {
		out = append(out, kind+" "+o.GetName()+" "+string(o.GetUID())+" "+o.GetResourceVersion())
	}
	nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if strings.HasPrefix(nodes.Items[i].Name, c.ns) {
			add("node", &nodes.Items[i])
		}
	}
	for _, p := range c.pods(t) {
		add("pod", &p)
	}
	deployments, err := c.Client().AppsV1().Deployments(c.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range deployments.Items {
		add("deployment", &deployments.Items[i])
	}
	jobs, err := c.Client().BatchV1().Jobs(c.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs.Items {
		add("job", &jobs.Items[i])
	}
	return out
}

// sentDry wants the API server to have judged at least one write.
func (c *cell) sentDry(t *testing.T) {
	t.Helper()
	controlplane.Eventually(t, 5*time.Second, "a dry run is in the audit log", func() (bool, string) {
		for _, e := range c.AuditEvents(t) {
			if e.UserAgent == c.agent && (strings.Contains(e.RequestURI, "dryRun=All") || e.ObjectRef.Subresource == "eviction") {
				return true, ""
			}
		}
		return false, ""
	})
}
