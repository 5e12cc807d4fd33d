package parts

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// BringMPS is how the MPS daemon comes beside a device plugin whose configuration has it share GPUs by MPS, or how that shares
// them otherwise. Who made the plugin's DaemonSet brings it: the GPU Operator from v24.3 on, the plugin's chart from v0.15 on.
func BringMPS(w *view.Cluster, n *view.Node, plugin *corev1.Pod, made *Set, from *corev1.ConfigMap) (title, step string, commands []string) {
	at := from.Namespace + "/" + from.Name
	logs := fmt.Sprintf("kubectl -n %s logs %s --tail=50  # says what it wants of MPS", plugin.Namespace, plugin.Name)
	edit := fmt.Sprintf("kubectl -n %s edit configmap %s  # timeSlicing for mps; then delete the pod %s", from.Namespace, from.Name, plugin.Name)
	const instead = "or write timeSlicing for mps in the ConfigMap: no limit of memory is kept then"
	if made == nil || !made.OfOperator() {
		const chart = "nvdp/nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin"
		set := fmt.Sprintf("--set config.name=%s --set gfd.enabled=true", from.Name)
		bring := "helm upgrade -i nvdp " + chart + " -n " + plugin.Namespace + " " + set + "  # in its place: delete the DaemonSet made by hand first"
		if made != nil && made.Named() {
			bring = made.Reuse(chart) + set
		}
		return "install the MPS daemon beside the device plugin, or have ConfigMap " + at + " share GPUs by timeSlicing",
			"have the device plugin come by its chart, which brings the daemon and GPU feature discovery; " + instead,
			[]string{logs, edit, bring}
	}
	if entry := bySlices(from); entry != "" && n.Labels[ConfigLabel] != "" {
		edit = fmt.Sprintf("kubectl label node %s %s=%s --overwrite  # the entry that shares them by timeSlicing", n.Name, ConfigLabel, entry)
	}
	return "have a GPU Operator that brings the MPS daemon (v24.3 and later), or have ConfigMap " + at + " share GPUs by timeSlicing",
		"upgrade the GPU Operator, and with it the device plugin: a newer image of the plugin alone has no daemon; " + instead,
		[]string{logs, edit, "helm list -A | grep gpu-operator  # its release and version", ReuseOperator(w, plugin.Namespace) + "--version VERSION"}
}

// bySlices is the first entry of a configuration that shares GPUs by time; empty for none.
func bySlices(from *corev1.ConfigMap) string {
	for _, entry := range slices.Sorted(maps.Keys(from.Data)) {
		if SharesOf(from.Data[entry]) != nil {
			return entry
		}
	}
	return ""
}
