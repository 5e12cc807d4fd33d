package admission

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/watcher/incident"
)

// queued lists what Kueue has not let begin, of kinds that are not read themselves (a PyTorchJob,
// a RayJob, a JobSet): they are suspended and none of their pods exists, and Kueue's Workload has
// what each of their pod sets asks for. A Job says it itself.
func queued(st *cluster.State) []incident.Refusal {
	var out []incident.Refusal
	var withPods map[incident.Ref]bool
	for _, w := range st.QueuedWorkloads {
		owner := metav1.GetControllerOfNoCopy(w)
		queue, _, err := unstructured.NestedString(w.Object, "spec", "queueName")
		if owner == nil || err != nil || queue == "" || owner.Kind == "Pod" || incident.OwnKind(owner.Kind) || w.GetDeletionTimestamp() != nil ||
			scaling.ConditionOf(w, "Finished").Met() || scaling.ConditionOf(w, "Admitted").Met() {
			continue
		}
		if withPods == nil { // few clusters have any
			withPods = haveOf(st)
		}
		ref := incident.Ref{Kind: incident.OwnerKind(owner), Namespace: w.GetNamespace(), Name: owner.Name}
		if !withPods[ref] {
			out = append(out, setsOf(w, owner, ref, queue)...)
		}
	}
	return out
}

// haveOf are all owners of pods that have not ended.
func haveOf(st *cluster.State) map[incident.Ref]bool {
	out := map[incident.Ref]bool{}
	for _, p := range st.Pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, ref := range incident.Owners(p, st.Owner) {
			out[ref] = true
		}
	}
	return out
}

// setsOf is one for each pod set of a Workload, with the pod that would be made first.
func setsOf(w *unstructured.Unstructured, owner *metav1.OwnerReference, ref incident.Ref, queue string) []incident.Refusal {
	sets, _, err := unstructured.NestedSlice(w.Object, "spec", "podSets")
	if err != nil {
		return nil
	}
	var out []incident.Refusal
	for _, item := range sets {
		var set struct {
			Name     string                 `json:"name"`
			Count    int                    `json:"count"`
			Template corev1.PodTemplateSpec `json:"template"`
		}
		m, ok := item.(map[string]any)
		if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(m, &set) != nil || set.Count <= 0 {
			continue
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.GetNamespace(), Name: owner.Name + "-" + set.Name + "-?", Labels: set.Template.Labels, Annotations: set.Template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*owner}}, Spec: set.Template.Spec, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		incident.WithLimitDefaults(p, nil)
		out = append(out, incident.Refusal{Owner: ref, Pod: p, Wants: set.Count, Missing: set.Count, Since: w.GetCreationTimestamp().Time, Version: w.GetResourceVersion(), Queue: queue})
	}
	return out
}
