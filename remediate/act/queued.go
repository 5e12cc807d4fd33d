package act

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// queueGate is Kueue's, which holds a pod until it is admitted (kueue/pkg/controller/constants).
const queueGate = "kueue.x-k8s.io/admission"

// asAdmitted is plan.ErrRefused for what Kueue has admitted: it has put the selectors and
// tolerations of its flavor into the spec, and one that is made again from that would keep
// them in whatever flavor it comes to next. Workloads may be nil, where the object's own label
// has to tell.
func asAdmitted(o metav1.Object, workloads []*unstructured.Unstructured) error {
	queue, admitted := o.GetLabels()[incident.QueueLabel], false
	kind := "job"
	switch o := o.(type) {
	case *batchv1.Job:
		admitted = queue != "" && !ptr.Deref(o.Spec.Suspend, false)
	case *corev1.Pod:
		kind = "pod"
		admitted = queue != "" && !slices.ContainsFunc(o.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == queueGate })
	}
	for _, w := range workloads {
		of := slices.ContainsFunc(w.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == o.GetUID() })
		_, has, err := unstructured.NestedMap(w.Object, "status", "admission")
		if of && (has || err != nil) {
			admitted = true
			if name, _, err := unstructured.NestedString(w.Object, "spec", "queueName"); queue == "" && err == nil {
				queue = name
			}
		}
	}
	if !admitted {
		return nil
	}
	return fmt.Errorf("%w: Kueue has admitted %s %s/%s by queue %s, and put its flavor's selectors and tolerations into it: edit it by hand: delete it, and make it again from your own manifest with the change",
		plan.ErrRefused, kind, o.GetNamespace(), o.GetName(), queue)
}

// targetOf is what an action makes again, as a state has it; nil when it has not.
func targetOf(st *cluster.State, t diagnosis.Target) metav1.Object {
	if t.Kind == "Pod" {
		if p := st.Pod(t.Namespace, t.Name); p != nil {
			return p
		}
		return nil
	}
	o, _ := st.Owner(t.Kind, t.Namespace, t.Name)
	return o
}
