package parts

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ByClaims tells of a GPUCluster: by that the GPU Operator brings NVIDIA's DRA driver, which hands GPUs out by claims, and no device
// plugin; there is no ClusterPolicy beside one (gpu-operator v26.7). What it says of what keeps it is told, too; nil where there is none.
func ByClaims(clusters []*unstructured.Unstructured) *diagnosis.Evidence {
	if len(clusters) == 0 {
		return nil
	}
	g := clusters[0]
	fact, claims := "the GPU Operator brings NVIDIA's DRA driver by it, and no device plugin", []diagnosis.Claim{diagnosis.That("metadata.name", "", diagnosis.Is, g.GetName())}
	list, _, _ := unstructured.NestedSlice(g.Object, "status", "conditions") //nolint:errcheck // conditions that are no list say nothing
	for _, c := range list {
		k, _ := c.(map[string]any) //nolint:errcheck // what is no condition is not a bad one
		bad := k["type"] == "Ready" && k["status"] == "False" || k["type"] == "Error" && k["status"] == "True"
		if message, _ := k["message"].(string); bad && message != "" { // the other of the two has it
			fact += fmt.Sprintf("; %v: %s", k["reason"], view.Told(view.Quotable(message, 600), 200))
			claims = append(claims, diagnosis.Says(message))
			break
		}
	}
	e := diagnosis.Fact("GPUCluster/"+g.GetName(), fact, claims...)
	return &e
}
