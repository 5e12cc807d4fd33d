package kubelet

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// A driver whose plugin runs on a node, and none of whose ResourceSlices is of it, is told of where others have theirs.
func TestUnlistedOn(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	plain := func(*cluster.State) {}
	for name, tc := range map[string]struct {
		edit func(*cluster.State)
		want string
	}{
		"it runs and lists nothing": {plain, "offers no device of gpu.nvidia.com, though the driver's plugin d/plugin-n runs there: no ResourceSlice of it is of that node"},
		"it is not ready": {func(st *cluster.State) {
			st.Pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "gpus", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		}, "offers no device of gpu.nvidia.com: the driver's plugin d/plugin-n is not ready there: gpus CrashLoopBackOff"},
		"it is ready since a minute": {func(st *cluster.State) {
			st.Pods[1].Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-time.Minute))
		}, ""},
		"it has a slice":              {func(st *cluster.State) { *st.ResourceSlices[0].Spec.NodeName = "n" }, ""},
		"nobody has one":              {func(st *cluster.State) { st.ResourceSlices = nil }, ""},
		"its slices are of all nodes": {func(st *cluster.State) { st.ResourceSlices[0].Spec.NodeName = nil }, ""},
		"it does not run there":       {func(st *cluster.State) { st.Pods = st.Pods[:1] }, ""},
		"its half for GPUs is off":    {func(st *cluster.State) { st.Pods[1].Spec.Containers[0].Name = "compute-domains" }, ""},
		"pods are not read":           {func(st *cluster.State) { st.Unread = map[string]string{"Pod": "forbidden"} }, ""},
	} {
		st := &cluster.State{Now: noon}
		labels := map[string]string{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "plugin"}}
		ds.Spec.Template.Labels = labels
		st.DaemonSets = append(st.DaemonSets, ds)
		for _, on := range []string{"m", "n"} {
			st.Nodes = append(st.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: on}})
			st.Pods = append(st.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "plugin-" + on, Labels: labels, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "plugin", Controller: new(true)}}},
				Spec:   corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "gpus"}}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}}})
		}
		st.ResourceSlices = []*resourcev1.ResourceSlice{{Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: new("m")}}}
		tc.edit(st)
		w := view.New(st)
		got := ""
		if u := UnlistedOn(w, []string{"gpu.nvidia.com"}, w.Nodes["n"]); u != nil {
			got = u.Says()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
