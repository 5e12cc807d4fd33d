package rca_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/owners"
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
		"one that is read":             {by("kubeflow.org/v1", "Trial", "t"), nil, ""},
		"one that is read, above it":   {by("kubeflow.org/v1", "Trial", "owned"), nil, "Experiment.kubeflow.org: the right to list experiments.kubeflow.org is missing; whether something owns e, and what, is not known"},
		"one that is read, and gone":   {by("kubeflow.org/v1", "Trial", "gone"), nil, ""},
		"one that is not installed":    {by("argoproj.io/v1alpha1", "Workflow", "w"), nil, "Workflow.argoproj.io: the API server does not serve workflows.argoproj.io; whether something owns w, and what, is not known"},
		"one that nobody could ask of": {by("slow.org/v1", "Thing", "s"), nil, "Thing.slow.org: ask what slow.org/v1 serves: timeout; whether something owns s, and what, is not known"},
		"nobody":                       {nil, nil, ""},
		"a Job":                        {by("batch/v1", "Job", "j"), job(), ""},
		"a Job that is gone":           {by("batch/v1", "Job", "j"), nil, ""},
		"a node":                       {by("v1", "Node", "n"), nil, ""},
		"an operator's":                {by("ray.io/v1", "RayService", "r"), nil, "RayService.ray.io: owners of this kind are not read; whether something owns r, and what, is not known"},
		"a Job of an operator's":       {by("batch/v1", "Job", "j"), job(by("jobset.x-k8s.io/v1alpha2", "JobSet", "s")...), "JobSet.jobset.x-k8s.io: owners of this kind are not read; whether something owns s, and what, is not known"},
		"another API's Job":            {by("batch.example.org/v1alpha1", "Job", "j"), job(), "Job.batch.example.org: owners of this kind are not read; whether something owns j, and what, is not known"},
		"one of the core API":          {by("v1", "ReplicationController", "c"), nil, "ReplicationController: owners of this kind are not read; whether something owns c, and what, is not known"},
		"a Job that a Job is owned by": {by("batch/v1", "Job", "j"), job(by("batch/v1", "Job", "j")...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			asks := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
			st := &cluster.State{Now: rcatest.Noon, Unread: map[string]string{}, Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", OwnerReferences: tc.owner},
				Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}}}},
				Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}}}}
			kind := func(kind, resource string) owners.Kind {
				return owners.Kind{Resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: resource}, API: schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: kind}, Namespaced: true}
			}
			st.OwnerKinds, st.OwnersAbsent = []owners.Kind{kind("Trial", "trials"), kind("Experiment", "experiments")}, []schema.GroupResource{{Group: "argoproj.io", Resource: "workflows"}}
			st.Unread["experiments.kubeflow.org"], st.Unread["things.slow.org"] = "the right to list experiments.kubeflow.org is missing", "ask what slow.org/v1 serves: timeout"
			trial := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "kubeflow.org/v1", Kind: "Trial"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "t"}}
			owned := trial
			owned.Name, owned.OwnerReferences = "owned", by("kubeflow.org/v1", "Experiment", "e")
			st.Owners = []*metav1.PartialObjectMetadata{&trial, &owned}
			if tc.job != nil {
				st.Jobs = append(st.Jobs, tc.job)
			}
			all, err := rca.Diagnose(t.Context(), st, rca.Options{})
			if err != nil || len(all) != 1 {
				t.Fatalf("%d incidents, %v", len(all), err)
			}
			got := slices.DeleteFunc(slices.Clone(all[0].Unread), func(s string) bool { return !strings.Contains(s, "whether something owns") })
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
