package tally

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// A plan whose pod runs waits for the others for a moment, also where none waited before: a
// pod that was refused is made, and only then bound.
func TestCalm(t *testing.T) {
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	one := []runtime.Object{podOf("TrainJob", "w", "late", "")}
	for _, tc := range []struct {
		name   string
		now    []runtime.Object
		before *v1alpha1.Before
		after  time.Duration
		want   string
	}{
		{"none waited, one that was refused is not bound yet", one, &v1alpha1.Before{Announced: new(0)}, time.Second, "ml/first runs, and 1 still waits"},
		{"none waited, all are bound", nil, &v1alpha1.Before{Announced: new(0)}, time.Second, ""},
		{"none waited, one was announced", one, &v1alpha1.Before{Announced: new(1)}, time.Second, ""},
		{"none waited, nothing was announced", one, &v1alpha1.Before{}, time.Second, ""},
		{"as many wait as before", one, &v1alpha1.Before{Waiting: 1}, time.Second, "ml/first runs, and 1 still waits"},
		{"fewer wait than before", one, &v1alpha1.Before{Waiting: 2}, time.Second, ""},
		{"that moment is over", one, &v1alpha1.Before{Announced: new(0)}, 10 * time.Second, ""},
		{"nobody counted", one, nil, time.Second, ""},
	} {
		w := incident.Ref{Kind: "TrainJob", Namespace: "ml", Name: "w"}
		rem := &v1alpha1.Remediation{Spec: v1alpha1.RemediationSpec{Workload: w}, Status: v1alpha1.RemediationStatus{Pod: "ml/first", Before: tc.before}}
		if tc.before != nil {
			tc.before.Workloads = []incident.Ref{w}
		}
		r := New(fake.NewClientset(tc.now...), owners.Reader{}, rem)
		e := &journal.Entry{Entry: &v1alpha1.Entry{Began: metav1.NewMicroTime(began), Note: began.Format(time.RFC3339Nano), Deadline: metav1.NewMicroTime(began.Add(5 * time.Minute))}}
		if got, err := r.Calm(t.Context(), e, began.Add(tc.after), 10*time.Second); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
	}
}

// The phase is Running also of a pod whose container was tried and never began: that is no proof that a fix worked.
func TestRunningIsBegun(t *testing.T) {
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w, start := incident.Ref{Kind: "Pod", Namespace: "ml", Name: "train"}, metav1.NewMicroTime(began)
	for want, state := range map[string]corev1.ContainerState{
		"ml/train": {Running: &corev1.ContainerStateRunning{}},
		"":         {Terminated: &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128}},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "u", CreationTimestamp: metav1.NewTime(began.Add(time.Minute))},
			Spec:   corev1.PodSpec{NodeName: "gpu-1", Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state}}}}
		rem := &v1alpha1.Remediation{Spec: v1alpha1.RemediationSpec{Workload: w}, Status: v1alpha1.RemediationStatus{Began: &start}}
		if got, err := New(fake.NewClientset(p), owners.Reader{}, rem).Running(t.Context()); err != nil || got != want {
			t.Errorf("%v: %q, %v; want %q", state, got, err, want)
		}
	}
}
