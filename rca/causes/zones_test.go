package causes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Which NUMA zone has what is told from the node's own object, and by nothing else.
func TestZonesOfARefusal(t *testing.T) {
	left := func(name, available string) map[string]any {
		return map[string]any{"name": name, "capacity": "2", "allocatable": "2", "available": available}
	}
	zone := func(name, kind string, resources ...any) any {
		return map[string]any{"name": name, "type": kind, "resources": resources}
	}
	const unsaid = "so it is where they lie, which no object read here tells"
	for name, k := range map[string]struct {
		node  string
		zones any
		want  string
	}{
		"each has one": {"n1", []any{zone("node-0", "Node", left("cpu", "2"), left("nvidia.com/gpu", "1"), left("memory", "1Gi")), zone("node-1", "Node", left("nvidia.com/gpu", "1"))},
			"so it is where they lie: by its NodeResourceTopology node-0 has 1 of 2 nvidia.com/gpu and 2 of 2 cpu, node-1 has 1 of 2 nvidia.com/gpu"},
		"another node's":         {"n2", []any{zone("node-0", "Node", left("nvidia.com/gpu", "1"))}, unsaid},
		"a socket is no zone":    {"n1", []any{zone("socket-0", "Socket", left("nvidia.com/gpu", "1"))}, unsaid},
		"of something else":      {"n1", []any{zone("node-0", "Node", left("memory", "1Gi"))}, unsaid},
		"what it has is no text": {"n1", []any{zone("node-0", "Node", map[string]any{"name": "nvidia.com/gpu", "available": int64(1)})}, unsaid},
		"zones are no list":      {"n1", "all", unsaid},
		"there are none":         {"n1", nil, unsaid},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.gpuNode(l4("n1", 2))
			w.pod("w", "n1", "nvidia.com/gpu", 2).Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "TopologyAffinityError", Message: "Resources cannot be allocated with Topology locality"}
			w.NodeTopologies = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": k.node}, "zones": k.zones}}}
			if got := w.told(t); !strings.Contains(got, k.want) || strings.Contains(got, "NodeResourceTopology/n1") == (k.want == unsaid) {
				t.Errorf("%s", got)
			}
		})
	}
}
