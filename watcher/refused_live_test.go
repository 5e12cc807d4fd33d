package watcher

import (
	"reflect"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// A Job without a pod is told when an event of its controller wakes the watcher, and
// resolved when its own status says that the pods exist.
func TestARefusedJobIsToldAndResolved(t *testing.T) {
	j := incidenttest.Job(func(*batchv1.Job) {})
	a := newAPI(j)
	write := func(t *testing.T, version string, edit func(*batchv1.Job)) {
		next := incidenttest.Job(edit)
		next.ResourceVersion = version
		if _, err := a.BatchV1().Jobs("ml").Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	watching(t, a, nil, func(t *testing.T, p *taken) {
		p.none(t, "its pods may be under way")
		told := func(name string) {
			t.Helper()
			e := incidenttest.Refusing("Job", "train", 5*time.Minute)
			if e.Name = name; name != "1" {
				e.FirstTimestamp = e.LastTimestamp
			}
			if _, err := a.CoreV1().Events("ml").Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		told("1")
		first := p.one(t)
		w := incident.Ref{Kind: "Job", Namespace: "ml", Name: "train"}
		requests := map[string]string{"nvidia.com/gpu": "1"}
		want := incident.Incident{ID: incident.ID(w, requests), Workload: w, Requests: requests, Pods: []incident.PodRef{}, Waiting: 4, Missing: 4, Since: incidenttest.Start.Add(time.Minute), Newest: "60"}
		if !reflect.DeepEqual(first, want) {
			t.Errorf("got %+v\nwant %+v", first, want)
		}
		told("2")
		p.none(t, "the controller tried again")
		if err := a.CoreV1().Events("ml").Delete(t.Context(), "1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		p.none(t, "the first event expired")
		last := p.after(t, func() { write(t, "80", func(j *batchv1.Job) { j.Status.Active = 4 }) })
		if want := (incident.Incident{ID: first.ID, Workload: w, Requests: requests, Pods: []incident.PodRef{}, Newest: "80", Resolved: true}); !reflect.DeepEqual(last, want) {
			t.Errorf("got %+v\nwant %+v", last, want)
		}
		pass(10 * time.Minute)
		p.none(t, "all pods exist")
		again := p.after(t, func() { write(t, "90", func(j *batchv1.Job) { j.Status.Active = 3 }) })
		if again.Waiting != 1 || again.Missing != 1 || again.Newest != "90" || again.Resolved {
			t.Errorf("one is refused again: %+v", again)
		}
	})
}

// Whose replicas the kubelet refused is resolved when its status says that all are
// ready, and told again, as of a later moment, when they are not any more.
func TestAStormIsResolvedByItsOwner(t *testing.T) {
	rs := incidenttest.ReplicaSet(1, 1, 0, false)
	failed := incidenttest.ReplicaOf(rs, "serve-1-a")
	failed.Spec.NodeName, failed.Status = "gpu-1", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError"}
	a := newAPI(rs)
	a.set(failed)
	write := func(t *testing.T, version string, ready int32) {
		next := incidenttest.ReplicaSet(1, 1, ready, false)
		next.ResourceVersion = version
		if _, err := a.AppsV1().ReplicaSets("ml").Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	watching(t, a, nil, func(t *testing.T, p *taken) {
		first := p.one(t)
		if first.Waiting != 1 || first.Newest != "101" {
			t.Errorf("got %+v", first)
		}
		last := p.after(t, func() { write(t, "150", 1) })
		if !last.Resolved || last.ID != first.ID || last.Newest != "150" {
			t.Errorf("it is ready: %+v", last)
		}
		again := p.after(t, func() { write(t, "160", 0) })
		if again.Resolved || again.ID != first.ID || again.Waiting != 1 || again.Newest != "160" {
			t.Errorf("it is not ready any more: %+v", again)
		}
	})
}
