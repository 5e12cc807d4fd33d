package rca_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/rcatest"
)

// Two incidents that one free GPU would serve say so of each other, no matter who gets it; where
// there are two GPUs neither says anything.
func TestIncidentsThatWantTheSameRoom(t *testing.T) {
	for gpus, want := range map[int64]bool{1: true, 2: false} {
		t.Run(fmt.Sprint(gpus), func(t *testing.T) {
			has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
			st := &cluster.State{Now: rcatest.Noon, Unread: map[string]string{}, Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"},
				Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}},
				Status: corev1.NodeStatus{Allocatable: has, Capacity: has, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}}}
			for _, name := range []string{"a", "b"} {
				asks := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
				st.Pods = append(st.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name},
					Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}}}},
					Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}})
			}
			all, err := rca.Diagnose(t.Context(), st, rca.Options{})
			if err != nil || len(all) != 2 {
				t.Fatalf("%d incidents, %v", len(all), err)
			}
			for i, d := range all {
				var other []string
				if want {
					other = []string{all[1-i].Incident + "#1"}
				}
				if !slices.Equal(d.Fixes[0].Conflicts, other) || d.Fixes[0].Effect.Runs != 1 {
					t.Errorf("%s: %v, want %v", d.Workload.Name, d.Fixes[0].Conflicts, other)
				}
			}
		})
	}
}

// In a crowd for one GPU each names no more than it can tell, and the work stays bounded.
func TestACrowdNamesFew(t *testing.T) {
	has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("1")}
	st := &cluster.State{Now: rcatest.Noon, Unread: map[string]string{}, Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}}, Status: corev1.NodeStatus{Allocatable: has, Capacity: has}}}}
	asks := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	for i := range 50 {
		st.Pods = append(st.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprint("p", i)},
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}})
	}
	all, err := rca.Diagnose(t.Context(), st, rca.Options{})
	if err != nil || len(all) != 50 {
		t.Fatalf("%d incidents, %v", len(all), err)
	}
	for _, d := range all {
		if n := len(d.Fixes[0].Conflicts); n != 20 {
			t.Errorf("%s names %d", d.Workload.Name, n)
		}
	}
}
