package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
)

// operatorNamespaces are where the GPU Operator is installed by its own
// instructions and by OpenShift's.
var operatorNamespaces = []string{"gpu-operator", "nvidia-gpu-operator"}

// maxNodeMaps bounds how many per-node ConfigMaps are fetched one by one.
const maxNodeMaps = 50

// configMaps gets the mig-parted configs by name: the right to list ConfigMaps
// would show secrets people keep there.
func (f *Follower) configMaps(ctx context.Context, s *State) {
	names := map[string]bool{"default-mig-parted-config": true}
	for _, p := range s.ClusterPolicies {
		if name, _, err := unstructured.NestedString(p.Object, "spec", "migManager", "config", "name"); err == nil && name != "" {
			names[name] = true
		}
	}
	for _, n := range s.Nodes {
		if n.Labels[nodeprobe.LabelMIGConfig] != "" && len(names) < maxNodeMaps {
			names[n.Name+"-mig-config"] = true
		}
	}
	for _, ns := range operatorNamespacesOf(s) {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			cm, err := f.client.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
			switch {
			case err == nil:
				trim(cm)
				s.ConfigMaps = append(s.ConfigMaps, cm)
			case apierrors.IsForbidden(err):
				s.Unread["ConfigMap"] = "the right to get configmaps in namespace " + ns + " is missing"
			case !apierrors.IsNotFound(err):
				s.Unread["ConfigMap"] = fmt.Sprintf("configmap %s/%s: %v", ns, name, err)
			}
		}
	}
	slices.SortFunc(s.ConfigMaps, func(a, b *corev1.ConfigMap) int { return compareNames(a, b) })
}

// operatorNamespacesOf adds the namespaces in which MIG manager's pods run.
func operatorNamespacesOf(s *State) []string {
	found := map[string]bool{}
	known := map[string]bool{}
	for _, ns := range s.Namespaces {
		known[ns.Name] = true
	}
	for _, ns := range operatorNamespaces {
		found[ns] = known[ns] || len(known) == 0
	}
	for _, p := range s.Pods {
		if p.Labels["app"] == "nvidia-mig-manager" {
			found[p.Namespace] = true
		}
	}
	var out []string
	for _, ns := range slices.Sorted(maps.Keys(found)) {
		if found[ns] {
			out = append(out, ns)
		}
	}
	return out
}
