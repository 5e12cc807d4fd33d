package act

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/plan"
)

// asAdmitted is plan.ErrRefused for what Kueue has admitted: one that is made again from a
// spec into which it has put its flavor's selectors would keep them in whatever flavor it comes
// to next. Workloads may be nil, where the object's own label has to tell.
func asAdmitted(o metav1.Object, workloads []*unstructured.Unstructured) error {
	queue, admitted := view.AdmittedBy(o, workloads)
	if !admitted {
		return nil
	}
	kind := "job"
	if _, is := o.(*corev1.Pod); is {
		kind = "pod"
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
