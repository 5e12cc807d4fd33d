package act

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
)

// Who was to be evicted because it did not run is left alone once it may run.
func TestWhoRunsByNowIsNotEvictedAsIdle(t *testing.T) {
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}
	for name, k := range map[string]struct {
		state corev1.ContainerState
		idle  string
		node  string
		stale bool
	}{
		"it waits for its image still":   {waits, diagnosis.DoesNotRun, "gpu-1", false},
		"it is about to begin":           {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}, diagnosis.DoesNotRun, "gpu-1", true},
		"it runs":                        {corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, diagnosis.DoesNotRun, "gpu-1", true},
		"it runs, and was seen to idle":  {corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, "30m0s", "gpu-1", false},
		"it is on another node":          {waits, diagnosis.DoesNotRun, "gpu-2", true},
		"it is evicted for another need": {corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, "", "gpu-1", false},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web", UID: "u"}, Spec: corev1.PodSpec{NodeName: k.node, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: k.state}}}}
		relied := map[string]string{"node": "gpu-1"}
		if k.idle != "" {
			relied["idle"] = k.idle
		}
		err := changedTarget(&cluster.State{Pods: []*corev1.Pod{p}}, diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: "web", UID: "u"}, relied)
		if errors.Is(err, plan.ErrStale) != k.stale || err != nil && !k.stale {
			t.Errorf("%s: %v", name, err)
		}
	}
}
