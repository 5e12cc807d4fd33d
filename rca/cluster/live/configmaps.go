package live

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

// operatorNamespaces are where the GPU Operator is installed by its own
// instructions and by OpenShift's.
var operatorNamespaces = []string{"gpu-operator", "nvidia-gpu-operator"}

// autoscalerNamespace is where the cluster autoscaler writes of itself, by default.
const autoscalerNamespace = "kube-system"

const (
	// fallbackMap is the operator's own config (gpu-operator before v26.3.0, and
	// where a driver cannot tell its profiles).
	fallbackMap = "default-mig-parted-config"
	// nodeMapSuffix ends the name of what MIG manager writes for its node at its
	// start (gpu-operator v26.3.0 and later).
	nodeMapSuffix = "-mig-config"
)

// configMaps gets the mig-parted configs, those of device plugins and the autoscaler's status
// by name: the right to list ConfigMaps would show secrets people keep there.
func (f *Follower) configMaps(ctx context.Context, s *cluster.State) {
	status := types.NamespacedName{Namespace: autoscalerNamespace, Name: cluster.AutoscalerStatus}
	plugins := pluginMaps(s)
	found, unread, without := f.layouts.read(ctx, operatorNamespacesOf(s), sharedMaps(s), nodeMaps(s), append(plugins, status)...)
	s.ConfigMaps = found
	if unread != "" {
		s.Unread["ConfigMap"] = unread
	}
	if why := without[status]; why != "" {
		s.Unread[cluster.AutoscalerStatusKind] = why
	}
	for _, one := range plugins {
		if why := without[one]; why != "" {
			s.Unread[cluster.PluginConfigKind] = why + " (" + one.Name + ")"
		}
	}
	slices.SortFunc(s.ConfigMaps, func(a, b *corev1.ConfigMap) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// maxPluginMaps bounds the configs of device plugins that are got.
const maxPluginMaps = 8

// pluginMaps are the configs that device plugins mount, or have in their environment, which say
// how GPUs are shared: by time-slicing or MPS, and by which strategy (k8s-device-plugin, chart and
// GPU Operator). Scripts that the GPU Operator mounts beside are none.
func pluginMaps(s *cluster.State) []types.NamespacedName {
	var out []types.NamespacedName
	for _, ds := range s.DaemonSets {
		spec := &ds.Spec.Template.Spec
		if !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return strings.HasPrefix(c.Name, "nvidia-device-plugin") }) {
			continue
		}
		for _, name := range mapsOf(spec) {
			if one := (types.NamespacedName{Namespace: ds.Namespace, Name: name}); len(out) < maxPluginMaps && !strings.HasSuffix(name, "-entrypoint") && !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return out
}

// mapsOf are the ConfigMaps that pods of a template are given whole.
func mapsOf(spec *corev1.PodSpec) []string {
	var out []string
	for _, v := range spec.Volumes {
		if v.ConfigMap != nil {
			out = append(out, v.ConfigMap.Name)
		}
	}
	for _, c := range spec.Containers {
		for _, from := range c.EnvFrom {
			if from.ConfigMapRef != nil {
				out = append(out, from.ConfigMapRef.Name)
			}
		}
	}
	return out
}

// sharedMaps are the names of configs that are in force for every node.
func sharedMaps(s *cluster.State) []string {
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
func nodeMaps(s *cluster.State) []string {
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
func operatorNamespacesOf(s *cluster.State) []string {
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
