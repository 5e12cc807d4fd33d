package parts

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/view"
)

// notFound is how the kubelet says that an object that a volume is made of is not there
// (pkg/volume/configmap and secret).
var notFound = regexp.MustCompile(`(configmap|secret) "([^"]+)" not found`)

// Absent is the object that a pod waits for, by the kubelet's words; empty for none.
func Absent(words string) (kind, name string) {
	if m := notFound.FindStringSubmatch(words); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// Precompiled says whether the driver's pod takes an image that is made for one kernel: by the
// label that the GPU Operator gives it, else by its policy.
func Precompiled(pod *corev1.Pod, w *view.Cluster) bool {
	if label := pod.Labels["nvidia.com/precompiled"]; label != "" {
		return label == "true"
	}
	return slices.ContainsFunc(w.State.ClusterPolicies, func(p *unstructured.Unstructured) bool {
		on, _, err := unstructured.NestedBool(p.Object, "spec", "driver", "usePrecompiled")
		return err == nil && on
	})
}

// NoHandler is how runtimes refuse a handler that they do not have.
func NoHandler(words string) bool {
	return strings.Contains(words, "no runtime for") || strings.Contains(words, "runtime handler") || strings.Contains(words, "RuntimeHandler")
}

// Hold is the verb of so many who hold something.
func Hold(n int) string {
	if n == 1 {
		return "holds"
	}
	return "hold"
}
