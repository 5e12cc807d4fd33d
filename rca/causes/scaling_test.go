package causes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// What keeps the GPUs from the node that came is why the promise is stuck; a node that is
// still coming, or another that is sick, is not.
func TestWhatCameWithoutGPUs(t *testing.T) {
	for name, row := range map[string]struct {
		node string
		ago  time.Duration
		want diagnosis.CauseID
	}{
		"it came without":       {"n1", time.Hour, diagnosis.GPUStackMissing},
		"it may still get them": {"n1", time.Minute, ""},
		"another one":           {"n2", time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.gpuNode(l4("n1", 1), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
				for _, list := range []corev1.ResourceList{n.Status.Allocatable, n.Status.Capacity} {
					for key := range list {
						if len(key) > 11 && key[:11] == "nvidia.com/" {
							delete(list, key)
						}
					}
				}
			})
			w.pod("w", "", "nvidia.com/gpu", 1)
			at := rcatest.Noon.Add(-row.ago).Format(time.RFC3339)
			w.NodeClaims = []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": "gpu-x", "creationTimestamp": at},
				"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"nvidia.com/gpu": "1"}}},
				"status": map[string]any{"nodeName": row.node, "conditions": []any{map[string]any{"type": "Launched", "status": "True", "lastTransitionTime": at}, map[string]any{"type": "Registered", "status": "True", "lastTransitionTime": at},
					map[string]any{"type": "Initialized", "status": "Unknown", "reason": "ResourceNotRegistered", "lastTransitionTime": at}}}}}}
			c := w.open(t)
			c.Judge()
			if got := c.CameWithout(); got != row.want {
				t.Errorf("%q, want %q: %+v", got, row.want, c.Judged)
			}
		})
	}
}
