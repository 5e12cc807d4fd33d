package rcatest

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/cluster"
)

// parts are the DaemonSets that Equip installs, by the container that tells what each is, and
// the label by which the GPU Operator chooses their nodes.
var parts = []struct{ name, container, label string }{
	{"nvidia-driver-daemonset", "nvidia-driver-ctr", "nvidia.com/gpu.deploy.driver"},
	{"nvidia-container-toolkit-daemonset", "nvidia-container-toolkit-ctr", "nvidia.com/gpu.deploy.container-toolkit"},
	{"nvidia-device-plugin-daemonset", "nvidia-device-plugin", "nvidia.com/gpu.deploy.device-plugin"},
}

// Equip gives a cluster the GPU Operator's driver, container toolkit and device plugin: three
// DaemonSets with a pod each on every node. On every so many-th node (0: on none) the device
// plugin crashes and the node offers nothing.
func Equip(st *cluster.State, every int) {
	yes, began := true, metav1.NewTime(Noon.Add(-48*time.Hour))
	tolerates := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	sets := make([]*appsv1.DaemonSet, len(parts))
	for i, part := range parts {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: part.name, UID: types.UID(part.name), CreationTimestamp: began}}
		ds.Spec.Template.Spec = corev1.PodSpec{NodeSelector: map[string]string{part.label: "true"}, Tolerations: tolerates, Containers: []corev1.Container{{Name: part.container, Image: "nvcr.io/nvidia/" + part.name}}}
		sets[i], st.DaemonSets = ds, append(st.DaemonSets, ds)
	}
	for k, n := range st.Nodes {
		broken := every > 0 && k%every == 0
		for i, part := range parts {
			n.Labels[part.label] = "true"
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: part.name + "-" + n.Name, CreationTimestamp: began, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: part.name, UID: sets[i].UID, Controller: &yes}}},
				Spec: *sets[i].Spec.Template.Spec.DeepCopy()}
			p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = n.Name, corev1.PodRunning, &began
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: part.container, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}}}
			if broken && i == len(parts)-1 {
				p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: part.container, RestartCount: 9, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
			}
			st.Pods = append(st.Pods, p)
		}
		if !broken {
			continue
		}
		delete(st.Geometries, n.Name)
		for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
			for name := range list {
				if len(name) > 11 && name[:11] == "nvidia.com/" {
					list[name] = resource.Quantity{}
				}
			}
		}
	}
}
