// Package rcatest builds the clusters that tests and benchmarks of rca's rooms, and of what is built on them, share: it
// says nothing of what is right. A cluster that one test alone needs is built there.
package rcatest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Noon is "now" of all that is made here.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Victim is a pod on node gpu-1 that holds so many GPUs and started so long ago.
func Victim(name string, prio int32, gpus int64, age time.Duration, app string) *corev1.Pod {
	yes, started := true, metav1.NewTime(Noon.Add(-age))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app, UID: "u", Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: "gpu-1", Priority: &prio, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI), corev1.ResourceCPU: resource.MustParse("1")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started},
	}
}

// BudgetFor lets so many pods of an app go.
func BudgetFor(app string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: app},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}
}
