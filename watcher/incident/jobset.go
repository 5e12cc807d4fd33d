package incident

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

const (
	// jobSetFailure is the reason of the event by which a JobSet says that a Job of it could not be made
	// (pkg/constants in kubernetes-sigs/jobset).
	jobSetFailure = "JobCreationFailed"
	// jobSetJob names, on a pod, the replicated Job that it is of.
	jobSetJob = "jobset.sigs.k8s.io/replicatedjob-name"
	// jobSetController is who makes the Jobs where a JobSet names somebody.
	jobSetController = "jobset.sigs.k8s.io/jobset-controller"
)

type jobSetSpec struct {
	Suspend       *bool   `json:"suspend,omitempty"`
	ManagedBy     *string `json:"managedBy,omitempty"`
	StartupPolicy struct {
		Order string `json:"startupPolicyOrder,omitempty"`
	} `json:"startupPolicy"`
	ReplicatedJobs []struct {
		Name     string `json:"name"`
		Replicas *int32 `json:"replicas,omitempty"`
		Template struct {
			Spec batchv1.JobSpec `json:"spec"`
		} `json:"template"`
	} `json:"replicatedJobs,omitempty"`
}

// ofJobSet reads what the pods of a JobSet's Jobs would be: a replicated Job is a set. Its controller makes
// them in their order, and ends at the first of which it cannot make all
// (pkg/controllers/jobset_controller.go, reconcileReplicatedJobs).
func ofJobSet(o *unstructured.Unstructured, h *Held) {
	h.owner = &metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: h.Name, UID: h.UID, Controller: new(true)}
	h.over = conditionMet(o, "Completed") || conditionMet(o, "Failed")
	from, _, err := unstructured.NestedMap(o.Object, "spec")
	var spec jobSetSpec
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(from, &spec) != nil {
		return
	}
	by := ptr.Deref(spec.ManagedBy, jobSetController)
	h.makes, h.aside = by == jobSetController, ptr.Deref(spec.Suspend, false)
	h.frees = h.makes && !h.over && (h.aside || spec.StartupPolicy.Order != "InOrder")
	for _, j := range spec.ReplicatedJobs {
		each := int(ptr.Deref(j.Template.Spec.Parallelism, 1))
		if n := j.Template.Spec.Completions; n != nil {
			each = min(each, int(*n))
		}
		set := podSet{Name: j.Name, Count: int(ptr.Deref(j.Replicas, 1)) * each, Each: each, Template: j.Template.Spec.Template, At: "spec.replicatedJobs[name=" + j.Name + "]", Within: "template.spec", Marks: map[string]string{jobSetJob: j.Name}}
		if set.Count < 1 {
			continue
		}
		if j.Replicas != nil && each == 1 {
			set.Stated = "replicas"
		}
		h.sets = append(h.sets, set)
	}
}
