package cluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lastApplied is what kubectl apply leaves on an object: the whole of it again.
const lastApplied = corev1.LastAppliedConfigAnnotation

// trim takes out, in place, what no diagnosis needs and what a dump must not
// hold: env values, the fields of managedFields (who and when stay), the copy
// kubectl keeps, and the images of nodes.
func trim(o Object) {
	if a := o.GetAnnotations(); a[lastApplied] != "" {
		delete(a, lastApplied)
		o.SetAnnotations(a)
	}
	if fields := o.GetManagedFields(); len(fields) > 0 {
		o.SetManagedFields(trimFields(o, fields))
	}
	switch t := any(o).(type) {
	case *corev1.Pod:
		trimPod(t)
	case *corev1.Node:
		t.Status.Images = nil
	}
}

// trimFields keeps who wrote when. For a node it also keeps that the MIG labels
// were written: since when a layout is pending is told by nothing else.
func trimFields(o Object, fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	out := make([]metav1.ManagedFieldsEntry, len(fields))
	_, node := any(o).(*corev1.Node)
	for i, f := range fields {
		out[i] = f
		out[i].FieldsV1 = nil
		if node {
			out[i].FieldsV1 = migFields(f.FieldsV1)
		}
	}
	return out
}

func trimPod(p *corev1.Pod) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			for k := range list[i].Env {
				list[i].Env[k].Value = ""
			}
		}
	}
}

// migFields is the part of a node's managed fields that names MIG manager's state
// label, nil when the entry did not write it.
func migFields(f *metav1.FieldsV1) *metav1.FieldsV1 {
	const label = `"f:nvidia.com/mig.config.state"`
	if f == nil || !strings.Contains(f.GetRawString(), label) {
		return nil
	}
	return metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{` + label + `:{}}}}`)
}
