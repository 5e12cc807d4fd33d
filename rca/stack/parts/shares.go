package parts

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/view"
)

// Shares is what of a configuration of the device plugin is about sharing GPUs
// (k8s-device-plugin api/config/v1).
type Shares struct {
	Flags   map[string]any `json:"flags"`
	Sharing struct {
		TimeSlicing struct {
			Rename    bool  `json:"renameByDefault"`
			Resources []any `json:"resources"`
		} `json:"timeSlicing"`
	} `json:"sharing"`
}

// SharesOf reads an entry of a configuration; nil where it shares nothing by time.
func SharesOf(entry string) *Shares {
	var c Shares
	if strings.TrimSpace(entry) == "" || yaml.Unmarshal([]byte(entry), &c) != nil || len(c.Sharing.TimeSlicing.Resources) == 0 {
		return nil
	}
	return &c
}

// Each is how often a configuration has a GPU offered under that name.
func (c *Shares) Each(resource corev1.ResourceName) int {
	for _, r := range c.Sharing.TimeSlicing.Resources {
		if entry, ok := r.(map[string]any); ok && entry["name"] == string(resource) {
			if count, ok := entry["replicas"].(float64); ok {
				return int(count)
			}
		}
	}
	return 0
}

// WrittenAt is when somebody last wrote a ConfigMap; zero where that is not told.
func WrittenAt(cm *corev1.ConfigMap) time.Time {
	var last time.Time
	for _, m := range cm.ManagedFields {
		if m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// ReplicasLabel is where GPU feature discovery says as how many each GPU is offered.
const ReplicasLabel = "nvidia.com/gpu.replicas"

// Replicas is as how many GPU feature discovery says that each GPU is offered; 0 where it does not.
func Replicas(n *view.Node) int {
	count, err := strconv.Atoi(n.Labels[ReplicasLabel])
	if err != nil {
		return 0
	}
	return count
}

// ManagesConfig says whether a pod of the plugin has the part that follows the node's label: the
// config manager (cmd/config-manager), which its chart and the GPU Operator add where they are
// given a ConfigMap. The values of variables are not read.
func ManagesConfig(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), isConfigManager)
}

// OfConfigManager says whether a container, by its name, is the config manager.
func OfConfigManager(spec *corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool { return c.Name == name && isConfigManager(c) })
}

func isConfigManager(c corev1.Container) bool {
	const manager = "config-manager"
	return strings.Contains(c.Name, manager) || slices.Contains(c.Command, manager) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "NODE_LABEL" })
}

// ConfigWith is a ConfigMap with an entry of that name that shares GPUs: of the plugin's own
// namespace, else of any.
func ConfigWith(w *view.Cluster, namespace, name string) *corev1.ConfigMap {
	var found *corev1.ConfigMap
	for _, cm := range w.State.ConfigMaps {
		if SharesOf(cm.Data[name]) == nil {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(view.Rank(found.Namespace == namespace), view.Rank(cm.Namespace == namespace)), strings.Compare(found.Namespace+"/"+found.Name, cm.Namespace+"/"+cm.Name)) > 0 {
			found = cm
		}
	}
	return found
}
