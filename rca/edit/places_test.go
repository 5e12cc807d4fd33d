package edit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where the spec of a pod stands is told by the kind of its workload, and by which part of it the pod is.
func TestWhereAPodSpecStands(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   string
		labels map[string]string
		want   string
	}{
		"a part by its name":    {"JobSet.jobset.x-k8s.io", map[string]string{"jobset.sigs.k8s.io/replicatedjob-name": "workers"}, "spec.replicatedJobs[name=workers].template.spec.template.spec"},
		"no word of the part":   {"JobSet.jobset.x-k8s.io", nil, ""},
		"a part as it is said":  {"InferenceService.serving.kserve.io", map[string]string{"component": "predictor"}, "spec.predictor"},
		"written otherwise":     {"PyTorchJob.kubeflow.org", map[string]string{"training.kubeflow.org/replica-type": "worker"}, "spec.pytorchReplicaSpecs.Worker.template.spec"},
		"a group of workers":    {"RayCluster.ray.io", map[string]string{"ray.io/group": "gpus"}, "spec.workerGroupSpecs[groupName=gpus].template.spec"},
		"the group of the head": {"RayService.ray.io", map[string]string{"ray.io/group": "headgroup"}, "spec.rayClusterConfig.headGroupSpec.template.spec"},
		"one for all":           {"Service.serving.knative.dev", nil, "spec.template.spec"},
		"Kubernetes' own":       {"Deployment", nil, ""},
		"of another API":        {"JobSet.acme.io", map[string]string{"jobset.sigs.k8s.io/replicatedjob-name": "workers"}, ""},
	} {
		if got := places[tc.kind].of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
