package tally

import (
	"testing"
	"time"

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
