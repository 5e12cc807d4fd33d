package rca_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/rcatest"
)

// The walk from a pod to what made it ends at a kind that nobody reads, and that is said: what
// it belongs to may be something else. A kind of the same name in another API is not read either.
func TestOwnersThatAreNotRead(t *testing.T) {
	by := func(apiVersion, kind, name string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &yes}}
	}
	job := func(owner ...metav1.OwnerReference) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "j", OwnerReferences: owner}}
	}
	for name, tc := range map[string]struct {
		owner []metav1.OwnerReference
		job   *batchv1.Job
		want  string
	}{
		"nobody":                       {nil, nil, ""},
		"a Job":                        {by("batch/v1", "Job", "j"), job(), ""},
		"a Job that is gone":           {by("batch/v1", "Job", "j"), nil, ""},
		"a node":                       {by("v1", "Node", "n"), nil, ""},
		"an operator's":                {by("ray.io/v1", "RayCluster", "r"), nil, "RayCluster.ray.io: owners of this kind are not read; whether something owns r, and what, is not known"},
		"a Job of an operator's":       {by("batch/v1", "Job", "j"), job(by("jobset.x-k8s.io/v1alpha2", "JobSet", "s")...), "JobSet.jobset.x-k8s.io: owners of this kind are not read; whether something owns s, and what, is not known"},
		"another API's Job":            {by("batch.volcano.sh/v1alpha1", "Job", "j"), job(), "Job.batch.volcano.sh: owners of this kind are not read; whether something owns j, and what, is not known"},
		"one of the core API":          {by("v1", "ReplicationController", "c"), nil, "ReplicationController: owners of this kind are not read; whether something owns c, and what, is not known"},
		"a Job that a Job is owned by": {by("batch/v1", "Job", "j"), job(by("batch/v1", "Job", "j")...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			asks := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
			st := &cluster.State{Now: rcatest.Noon, Unread: map[string]string{}, Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", OwnerReferences: tc.owner},
				Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}}}},
				Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}}}}
			if tc.job != nil {
				st.Jobs = append(st.Jobs, tc.job)
			}
			all, err := rca.Diagnose(t.Context(), st, rca.Options{})
			if err != nil || len(all) != 1 {
				t.Fatalf("%d incidents, %v", len(all), err)
			}
			got := slices.DeleteFunc(slices.Clone(all[0].Unread), func(s string) bool { return !strings.Contains(s, "owners of this kind") })
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
