package view

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/watcher/incident"
)

// queueGate is Kueue's, which holds a pod until it is admitted (kueue/pkg/controller/constants).
const queueGate = "kueue.x-k8s.io/admission"

// FlavorOf is the ResourceFlavor that has a label and a value, and whether any node has them;
// nil where none has. Kueue puts a flavor's labels into what it admits.
func (w *Cluster) FlavorOf(key, value string) (flavor *unstructured.Unstructured, onNode bool) {
	for _, f := range w.State.Queues.Flavors {
		if has, _, err := unstructured.NestedString(f.Object, "spec", "nodeLabels", key); err == nil && has != "" && has == value {
			flavor = f
		}
	}
	return flavor, slices.ContainsFunc(w.State.Nodes, func(n *corev1.Node) bool { return n.Labels[key] == value })
}

// AdmittedBy says whether Kueue has admitted the Job or pod, and through which queue: then it
// has put the selectors and tolerations of its flavor into the spec. It is told by the object's
// own label, or by the Workload that the object owns; what cannot be read of that counts.
func AdmittedBy(o metav1.Object, workloads []*unstructured.Unstructured) (queue string, admitted bool) {
	queue = o.GetLabels()[incident.QueueLabel]
	kind := ""
	switch o := o.(type) {
	case *batchv1.Job:
		kind = "Job"
		admitted = queue != "" && !ptr.Deref(o.Spec.Suspend, false)
	case *corev1.Pod:
		kind = "Pod"
		admitted = queue != "" && !slices.ContainsFunc(o.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == queueGate })
	}
	for _, w := range workloads {
		of := w.GetNamespace() == o.GetNamespace() && slices.ContainsFunc(w.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return Refers(&r, kind, o.GetName(), o.GetUID()) })
		_, has, err := unstructured.NestedMap(w.Object, "status", "admission")
		if of && (has || err != nil) {
			admitted = true
			if name, _, err := unstructured.NestedString(w.Object, "spec", "queueName"); queue == "" && err == nil {
				queue = name
			}
		}
	}
	return queue, admitted
}
