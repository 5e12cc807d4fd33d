package view

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// How a pod's work is looked up.
func TestHolder(t *testing.T) {
	edit := func(change func(*corev1.Pod)) *corev1.Pod {
		p := rcatest.Victim("p", 0, 1, 5*time.Hour, "x")
		change(p)
		return p
	}
	asks := func(list corev1.ResourceList) *corev1.Pod {
		return edit(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list })
	}
	status := func(name string, state corev1.ContainerState) *corev1.Pod {
		return edit(func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: name, State: state}} })
	}
	restarted := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(rcatest.Noon.Add(-time.Minute))}}
	began := rcatest.Noon.Add(-5 * time.Hour)
	for name, k := range map[string]struct {
		pod     *corev1.Pod
		product string
		want    diagnosis.Holder
		holds   bool
	}{
		"one GPU":          {edit(func(*corev1.Pod) {}), "", diagnosis.Holder{Devices: 1, Running: began}, true},
		"no GPU":           {asks(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}), "", diagnosis.Holder{Devices: 1, Running: began}, false},
		"two instances":    {asks(corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("2")}), "", diagnosis.Holder{Devices: 2, MIG: true, Running: began}, true},
		"strategy single":  {edit(func(*corev1.Pod) {}), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", diagnosis.Holder{Devices: 1, MIG: true, Running: began}, true},
		"shares":           {asks(corev1.ResourceList{"nvidia.com/gpu.shared": resource.MustParse("3")}), "", diagnosis.Holder{Devices: 1, Running: began}, true},
		"start not told":   {edit(func(p *corev1.Pod) { p.Status.StartTime = nil }), "", diagnosis.Holder{Devices: 1}, true},
		"restarted":        {status("c", restarted), "", diagnosis.Holder{Devices: 1, Running: rcatest.Noon.Add(-time.Minute)}, true},
		"does not run":     {status("c", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}), "", diagnosis.Holder{Devices: 1}, true},
		"sidecar restarts": {status("sidecar", restarted), "", diagnosis.Holder{Devices: 1, Running: began}, true},
	} {
		n := &Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"nvidia.com/gpu.product": k.product}}},
			Requests: map[*corev1.Pod]corev1.ResourceList{k.pod: PodRequests(k.pod)}}
		k.want.PodName = diagnosis.PodName{Namespace: "a", Name: "p"}
		if got, holds := n.Holder(k.pod); got != k.want || holds != k.holds {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, holds, k.want, k.holds)
		}
	}
}
