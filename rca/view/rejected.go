package view

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident"
)

// Rejected are the pods that kubelets have refused, by node; read only.
func (w *Cluster) Rejected() map[string][]*corev1.Pod {
	if w.rejected == nil {
		w.rejected = map[string][]*corev1.Pod{}
		for _, p := range w.State.Pods {
			if p.Spec.NodeName == "" || p.Status.Phase != corev1.PodFailed {
				continue
			}
			if _, _, waits := incident.Waiting(p); waits {
				w.rejected[p.Spec.NodeName] = append(w.rejected[p.Spec.NodeName], p)
			}
		}
	}
	return w.rejected
}

// PluginPod is the pod of the device plugin's DaemonSet on the node; nil where there is
// none. Anybody may name a pod so: one that no DaemonSet recreates is not it.
func (v *Node) PluginPod() *corev1.Pod {
	var named *corev1.Pod
	for _, p := range v.Pods {
		by := metav1.GetControllerOfNoCopy(p)
		if by == nil || by.Kind != "DaemonSet" {
			continue
		}
		if slices.ContainsFunc(p.Spec.Containers, func(k corev1.Container) bool { return strings.Contains(k.Name, PluginName) || k.Name == GKEPluginName }) {
			return p
		}
		if named == nil && (strings.Contains(p.Name, PluginName) && !strings.Contains(p.Name, MPSName) || strings.HasPrefix(p.Name, HAMiPluginName)) {
			named = p
		}
	}
	return named
}

// MIGManagerName is in the name of MIG manager's pods (GPU Operator).
const MIGManagerName = "nvidia-mig-manager"

// MIGManagerPod is MIG manager's pod on the node; nil where none is seen.
func (v *Node) MIGManagerPod() *corev1.Pod {
	for _, p := range v.Pods {
		if by := metav1.GetControllerOfNoCopy(p); by != nil && by.Kind == "DaemonSet" && strings.Contains(p.Name, MIGManagerName) {
			return p
		}
	}
	return nil
}

// HasPlugins says whether the device plugin's pod is seen on any node.
func (w *Cluster) HasPlugins() bool {
	if w.anyPlugin == nil {
		w.anyPlugin = new(slices.ContainsFunc(w.SortedNodes(), func(n *Node) bool { return n.PluginPod() != nil }))
	}
	return *w.anyPlugin
}

// GPUHolders are the pods of the node that hold GPUs of it.
func (v *Node) GPUHolders() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range v.Pods {
		if HoldsGPU(v.Requests[p]) {
			out = append(out, p)
		}
	}
	return out
}
