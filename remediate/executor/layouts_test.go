package executor

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// teamsLayouts are a platform team's own: with these a plan for 2g.10gb has to write an
// entry of its own.
const teamsLayouts = `# ours since 2024
version: v1
mig-configs:
  # for notebooks
  all-1g.5gb:
    - devices: all
      mig-enabled: true
      mig-devices:
        1g.5gb: 7
  all-disabled: # nobody uses it
    - devices: all
      mig-enabled: false
`

// owned has ClusterPolicy name a ConfigMap of the team's own.
func (c *cell) owned(t *testing.T) {
	t.Helper()
	policies := c.Dynamic().Resource(schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"})
	if _, err := policies.List(t.Context(), metav1.ListOptions{}); apierrors.IsNotFound(err) {
		c.InstallCRDs(t, "../../cmd/unpend/acceptance/testdata/crds")
	}
	c.configured(t)
	c.editConfig(t, func(string) string { return teamsLayouts })
	policy := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "of-" + c.ns},
		"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": c.name(1) + "-mig-config"}}}}}
	if _, err := policies.Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := policies.Delete(ctx, policy.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func (c *cell) layouts(t *testing.T) string {
	t.Helper()
	cm, err := c.Client().CoreV1().ConfigMaps(c.ns).Get(t.Context(), c.name(1)+"-mig-config", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm.Data["config.yaml"]
}

// misspelled is a node that is asked for a layout which no entry has, and a pod that waits
// for another than it has.
func (c *cell) misspelled(t *testing.T) string {
	t.Helper()
	node := c.gpuNode(t, 1, func(n *sim.Node) { n.Config = "all-2g.10bg" })
	c.job(t, spec("2g.10gb", ""))
	return node
}

// MIG manager is given an entry that it knows, or one of ours beside the team's own; by an
// executor that crashes before and after each of its writes.
func TestFixMIGConfig(t *testing.T) {
	for name, custom := range map[string]bool{"an entry that is there": false, "an entry of ours": true} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t)
			node := c.misspelled(t)
			writes := []write{{"patch", "nodes", "", 200}, {"patch", "nodes", "", 200}, {"patch", "nodes", "", 200}}
			if custom {
				c.owned(t)
				writes = []write{writes[0], {"update", "configmaps", "", 200}, writes[1], writes[2]}
			} else {
				c.configured(t)
			}
			before := c.layouts(t)
			d, f := c.finds(t, diagnosis.FixMIGConfig)
			c.crash.always = true
			rem := c.recorded(t, d, f)
			c.decide(t, rem, "alice", v1alpha1.Approve)
			rem = c.carriedOut(t, rem.Name, c.executor)
			c.crash.always = false
			ended(t, rem, v1alpha1.Succeeded, c.ns+"/training-", " runs")
			config := f.Actions[0].Relayout.Config
			if n := c.node(t, node); n.Labels[nodeprobe.LabelMIGConfig] != config || n.Labels[nodeprobe.LabelMIGConfigState] != "success" || n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
				t.Errorf("config %s %s, unschedulable %v, mark %q", n.Labels[nodeprobe.LabelMIGConfig], n.Labels[nodeprobe.LabelMIGConfigState], n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
			}
			added, kept := strings.CutPrefix(c.layouts(t), before)
			if !kept || custom != strings.HasPrefix(added, "  "+config+":\n") || custom != strings.HasPrefix(config, "unpend-") || !custom && (config != "all-2g.10gb" || added != "") {
				t.Errorf("config %s, and the layouts are\n%s", config, c.layouts(t))
			}
			c.wrote(t, writes)
			c.noLocks(t)
		})
	}
}

// mended is a plan of the team's cell that has written an entry, with success.
func (c *cell) mended(t *testing.T) (node string, f diagnosis.Fix, rem *v1alpha1.Remediation) {
	t.Helper()
	node = c.misspelled(t)
	c.owned(t)
	d, f := c.finds(t, diagnosis.FixMIGConfig)
	rem = c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	rem = c.carriedOut(t, rem.Name, c.executor)
	ended(t, rem, v1alpha1.Succeeded)
	return node, f, rem
}

func relabelled(config string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[nodeprobe.LabelMIGConfig] = config }
}
