package cluster

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
)

// operatorNamespaces are where the GPU Operator is installed by its own
// instructions and by OpenShift's.
var operatorNamespaces = []string{"gpu-operator", "nvidia-gpu-operator"}

// What the cluster autoscaler writes of itself, by default (cluster-autoscaler/clusterstate,
// --status-config-map-name).
const (
	autoscalerNamespace = "kube-system"
	// AutoscalerStatus is the name of its ConfigMap.
	AutoscalerStatus = "cluster-autoscaler-status"
	// AutoscalerStatusKind is what State.Unread calls it.
	AutoscalerStatusKind = "ConfigMap." + AutoscalerStatus
)

const (
	// fallbackMap is the operator's own config (gpu-operator before v26.3.0, and
	// where a driver cannot tell its profiles).
	fallbackMap = "default-mig-parted-config"
	// nodeMapSuffix ends the name of what MIG manager writes for its node at its
	// start (gpu-operator v26.3.0 and later).
	nodeMapSuffix = "-mig-config"
)

// configMaps gets the mig-parted configs and the autoscaler's status by name: the right to
// list ConfigMaps would show secrets people keep there.
func (f *Follower) configMaps(ctx context.Context, s *State) {
	status := types.NamespacedName{Namespace: autoscalerNamespace, Name: AutoscalerStatus}
	found, unread, besides := f.layouts.read(ctx, operatorNamespacesOf(s), sharedMaps(s), nodeMaps(s), status)
	s.ConfigMaps = found
	if unread != "" {
		s.Unread["ConfigMap"] = unread
	}
	if besides != "" {
		s.Unread[AutoscalerStatusKind] = besides
	}
	slices.SortFunc(s.ConfigMaps, func(a, b *corev1.ConfigMap) int { return compareNames(a, b) })
}

// sharedMaps are the names of configs that are in force for every node.
func sharedMaps(s *State) []string {
	names := []string{fallbackMap}
	for _, p := range s.ClusterPolicies {
		if name, _, err := unstructured.NestedString(p.Object, "spec", "migManager", "config", "name"); err == nil && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nodeMaps are the names of the configs that MIG manager may have written: it works
// where the label is.
func nodeMaps(s *State) []string {
	var names []string
	for _, n := range s.Nodes {
		if n.Labels[nodeprobe.LabelMIGConfig] != "" {
			names = append(names, n.Name+nodeMapSuffix)
		}
	}
	slices.Sort(names)
	return names
}

// operatorNamespacesOf adds the namespaces in which MIG manager's pods run.
func operatorNamespacesOf(s *State) []string {
	var out []string
	for _, ns := range operatorNamespaces {
		if len(s.Namespaces) == 0 || slices.ContainsFunc(s.Namespaces, func(n *corev1.Namespace) bool { return n.Name == ns }) {
			out = append(out, ns)
		}
	}
	for _, p := range s.Pods {
		if p.Labels["app"] == "nvidia-mig-manager" {
			out = append(out, p.Namespace)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return slices.Compact(out)
}
