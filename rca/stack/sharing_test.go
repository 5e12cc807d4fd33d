package stack

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// The entry of the plugin's configuration that is in force is that of the node's label, else the
// policy's default, else the only one, else the one that is called default.
func TestWhichEntryIsInForce(t *testing.T) {
	policy := func(name any) *unstructured.Unstructured {
		config := map[string]any{}
		if name != nil {
			config["default"] = name
		}
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "cp"}, "spec": map[string]any{"devicePlugin": map[string]any{"config": config}}}}
	}
	three := map[string]string{"a": "of a", "b": "of b", "default": "of default"}
	for name, k := range map[string]struct {
		label    string
		policies []*unstructured.Unstructured
		data     map[string]string
		want     string
	}{
		"the node's label":         {"a", []*unstructured.Unstructured{policy("b")}, three, "of a"},
		"a label of none":          {"x", []*unstructured.Unstructured{policy("b")}, three, ""},
		"the policy's":             {"", []*unstructured.Unstructured{policy("b")}, three, "of b"},
		"the second policy's":      {"", []*unstructured.Unstructured{policy(nil), policy("b")}, three, "of b"},
		"a policy that names none": {"", []*unstructured.Unstructured{policy("")}, three, "of default"},
		"a policy that is odd":     {"", []*unstructured.Unstructured{policy(int64(1))}, three, "of default"},
		"no policy":                {"", nil, three, "of default"},
		"the only one":             {"", nil, map[string]string{"z": "of z"}, "of z"},
		"none":                     {"", nil, nil, ""},
		"of two, none is default":  {"", nil, map[string]string{"a": "of a", "b": "of b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			l.ClusterPolicies = k.policies
			n := l.gpuNode("n")
			if k.label != "" {
				n.Labels[pluginConfigLabel] = k.label
			}
			w := view.New(l.State)
			if got := parts.InForce(w, w.Nodes["n"], &corev1.ConfigMap{Data: k.data}); got != k.want {
				t.Errorf("%q, want %q", got, k.want)
			}
		})
	}
}

// That a container is given no GPU is proved where the driver itself shows the node's, and
// nothing speaks against its report.
func TestHowSureItIsThatAContainerGetsNoGPU(t *testing.T) {
	for name, k := range map[string]struct {
		source string
		doubt  string
		want   diagnosis.Certainty
	}{
		"nobody reports":         {"", "", diagnosis.Likely},
		"the driver shows them":  {string(nodeprobe.SourceNVML), "", diagnosis.Proven},
		"labels alone do":        {string(nodeprobe.SourceLabels), "", diagnosis.Likely},
		"its report is doubtful": {string(nodeprobe.SourceNVML), "it cannot be", diagnosis.Likely},
	} {
		l := newLab()
		l.gpuNode("n")
		l.pod(parts.Plugin, "n", crashes("no card"))
		w := view.New(l.State)
		n := w.Nodes["n"]
		if n.Doubt = k.doubt; k.source != "" {
			n.Geometry = &nodeprobe.NodeGeometry{}
			n.Geometry.Report.Source = nodeprobe.Source(k.source)
		}
		if got := Of(w).pluginOn(n).outside("crashes", "x").Certainty; got != k.want {
			t.Errorf("%s: %s, want %s", name, got, k.want)
		}
	}
}
