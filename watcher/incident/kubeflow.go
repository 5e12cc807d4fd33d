package incident

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// How Kubeflow's training operator names its jobs' pods, and tells that it could not make one
// (pkg/apis/kubeflow.org/v1, pkg/controller.v1/control/pod_control.go in kubeflow/trainer, release-1.9).
const (
	kubeflowGroup   = "kubeflow.org"
	kubeflowJob     = "training.kubeflow.org/job-name"
	kubeflowRole    = "training.kubeflow.org/replica-type"
	kubeflowFailure = "FailedCreatePod"
	// kubeflowOperator is who makes the pods where a job names somebody.
	kubeflowOperator = "kubeflow.org/training-operator"
)

type kubeflowReplicas struct {
	Replicas *int32                 `json:"replicas,omitempty"`
	Template corev1.PodTemplateSpec `json:"template"`
}

// ofKubeflow reads what the pods of one of the operator's jobs would be: each type of replicas is a set, which
// stands under its name in the only field of that kind. It goes through them in no order, and ends at the
// first that it cannot make (pkg/controller.v1/common/job.go, ReconcileJobs). A pod that has ended is there.
func ofKubeflow(o *unstructured.Unstructured, h *Held) {
	h.owner = &metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: h.Name, UID: h.UID, Controller: new(true)}
	h.unordered, h.answers = true, true // JobCreated, at once
	h.over = conditionMet(o, "Succeeded") || conditionMet(o, "Failed")
	spec, _, err := unstructured.NestedMap(o.Object, "spec")
	if err != nil {
		return
	}
	by := text(o, "spec", "runPolicy", "managedBy")
	suspended, _, err := unstructured.NestedBool(o.Object, "spec", "runPolicy", "suspend")
	h.makes, h.aside = err == nil && (by == "" || by == kubeflowOperator), suspended
	for field, of := range spec {
		types, ok := of.(map[string]any)
		if !ok || !strings.HasSuffix(field, "ReplicaSpecs") {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(types)) {
			from, ok := types[name].(map[string]any)
			var r kubeflowReplicas
			if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(from, &r) != nil || ptr.Deref(r.Replicas, 1) < 1 {
				continue
			}
			role := strings.ToLower(name)
			set := podSet{Name: role, Count: int(ptr.Deref(r.Replicas, 1)), Template: r.Template, Marks: map[string]string{kubeflowJob: h.Name, kubeflowRole: role}, At: "spec." + field + "." + name, Kept: true}
			if r.Replicas != nil {
				set.Stated = "replicas"
			}
			h.sets = append(h.sets, set)
		}
	}
}
