package stack_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// What a diagnosis says of each node is the first link that is broken there: nobody has installed anything, a link of the node's own, or
// devices that are known and not healthy; of a whole node that they are held.
func TestFirstBrokenLinkIsTheCause(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := stack.NewLab()
		want := l.Draw(r)
		asking := func(name, node string, count resource.Quantity) *corev1.Pod {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, CreationTimestamp: metav1.NewTime(l.Now.Add(-600e9))}}
			list := corev1.ResourceList{view.WholeGPU: count}
			p.Spec = corev1.PodSpec{NodeName: node, SchedulerName: corev1.DefaultSchedulerName, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}}
			p.Status.Phase = corev1.PodRunning
			return p
		}
		for _, n := range l.Nodes {
			if n.Status.Allocatable == nil {
				n.Status.Allocatable, n.Status.Capacity = corev1.ResourceList{}, corev1.ResourceList{}
			}
			n.Status.Allocatable, n.Status.Capacity = n.Status.Allocatable.DeepCopy(), n.Status.Capacity.DeepCopy()
			n.Status.Allocatable["pods"], n.Status.Capacity["pods"] = resource.MustParse("110"), resource.MustParse("110")
			if want[n.Name].Cause == "" && n.Name != "cpu" {
				l.Pods = append(l.Pods, asking("holds-"+n.Name, n.Name, resource.MustParse("4")))
			}
		}
		waits := asking("waits", "", resource.MustParse("4"))
		waits.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
		l.Pods = append(l.Pods, waits)
		all, err := rca.Diagnose(t.Context(), l.State, rca.Options{})
		if err != nil || len(all) != 1 {
			r.Fatalf("%v, %+v", err, all)
		}
		for name, is := range want {
			cause := is.Cause
			if cause == "" {
				cause = diagnosis.GPUsInUse
			}
			of := slices.IndexFunc(all[0].Causes, func(k diagnosis.Cause) bool { return slices.Contains(k.Nodes, name) })
			if of < 0 || all[0].Causes[of].ID != cause || all[0].Causes[of].Certainty != diagnosis.Proven {
				r.Fatalf("%s is of %s: %+v", name, cause, all[0].Causes)
			}
		}
	})
}
