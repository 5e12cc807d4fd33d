package tally

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// A workload is settled when its controller has made all that it wants, and nothing else is
// left.
func TestSettled(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ml", Name: "w", Generation: 2}
	deployment := func(change func(*appsv1.Deployment)) runtime.Object {
		d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3}}
		change(d)
		return d
	}
	set := func(change func(*appsv1.StatefulSet)) runtime.Object {
		s := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, CurrentRevision: "a", UpdateRevision: "b"}}
		change(s)
		return s
	}
	job := func(change func(*batchv1.Job)) runtime.Object {
		j := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: new(int32(3)), Completions: new(int32(4))}, Status: batchv1.JobStatus{Active: 3}}
		change(j)
		return j
	}
	for name, tc := range map[string]struct {
		kind string
		o    runtime.Object
		want bool
	}{
		"a Deployment that is done":        {"Deployment", deployment(func(*appsv1.Deployment) {}), true},
		"one whose change nobody has seen": {"Deployment", deployment(func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 }), false},
		"a Deployment with a pod to come":  {"Deployment", deployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 2 }), false},
		"one with an old pod left":         {"Deployment", deployment(func(d *appsv1.Deployment) { d.Status.Replicas = 4 }), false},
		"one that is paused":               {"Deployment", deployment(func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.Replicas = true, 4 }), true},
		"a StatefulSet that rolls":         {"StatefulSet", set(func(*appsv1.StatefulSet) {}), false},
		"one that has rolled":              {"StatefulSet", set(func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 3 }), true},
		"one that nobody changed":          {"StatefulSet", set(func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = "a" }), true},
		"one down to its partition": {"StatefulSet", set(func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
		}), true},
		"one that a person rolls":                {"StatefulSet", set(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }), true},
		"one that lacks a pod":                   {"StatefulSet", set(func(s *appsv1.StatefulSet) { s.Status.Replicas, s.Status.UpdateRevision = 2, "a" }), false},
		"a Job with all its pods":                {"Job", job(func(*batchv1.Job) {}), true},
		"a Job with a pod to come":               {"Job", job(func(j *batchv1.Job) { j.Status.Active = 2 }), false},
		"one whose last pods run":                {"Job", job(func(j *batchv1.Job) { j.Status.Active, j.Status.Succeeded = 1, 3 }), true},
		"one that is suspended":                  {"Job", job(func(j *batchv1.Job) { j.Spec.Suspend, j.Status.Active = new(true), 0 }), true},
		"a Deployment that is gone":              {"Deployment", job(func(*batchv1.Job) {}), true},
		"a workload of a kind that nobody reads": {"TrainJob", job(func(*batchv1.Job) {}), true},
	} {
		r := New(fake.NewClientset(tc.o), owners.Reader{}, &v1alpha1.Remediation{Spec: v1alpha1.RemediationSpec{Workload: incident.Ref{Kind: tc.kind, Namespace: "ml", Name: "w"}}})
		got, err := r.settled(t.Context())
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
