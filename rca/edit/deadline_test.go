package edit

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/view"
)

// A wait says when, where deadlines tell: the last of the holders', each by the sooner of
// its own and its Job's.
func TestDeadline(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	seconds := func(n int64) *int64 { return &n }
	started := metav1.NewTime(now.Add(-time.Hour))
	job := func(name string, deadline *int64) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: batchv1.JobSpec{ActiveDeadlineSeconds: deadline}, Status: batchv1.JobStatus{StartTime: &started}}
	}
	yes := true
	pod := func(of string, deadline *int64) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, Spec: corev1.PodSpec{ActiveDeadlineSeconds: deadline}, Status: corev1.PodStatus{StartTime: &started}}
		if of != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: of, Controller: &yes}}
		}
		return p
	}
	st := &cluster.State{Now: now, Jobs: []*batchv1.Job{job("ends", seconds(5430)), job("endless", nil), job("over", seconds(60))}}
	c := &Workload{Case: &causes.Case{Asker: evict.NewLedger(view.New(st)).ForNextPod()}}
	for name, tc := range map[string]struct {
		holders []*corev1.Pod
		want    int
	}{
		"its Job's, rounded up":        {[]*corev1.Pod{pod("ends", nil)}, 31},
		"its own comes sooner":         {[]*corev1.Pod{pod("ends", seconds(4200))}, 10},
		"of a Job that has none":       {[]*corev1.Pod{pod("endless", nil)}, 0},
		"of no Job":                    {[]*corev1.Pod{pod("", nil)}, 0},
		"the last of several":          {[]*corev1.Pod{pod("", seconds(4200)), pod("ends", nil)}, 31},
		"one of several has none":      {[]*corev1.Pod{pod("ends", nil), pod("endless", nil)}, 0},
		"a Job that the state lacks":   {[]*corev1.Pod{pod("gone", nil)}, 0},
		"passed, and the pod is there": {[]*corev1.Pod{pod("over", nil)}, 1},
	} {
		if got := c.deadline(tc.holders); got != tc.want {
			t.Errorf("%s: %d min, want %d", name, got, tc.want)
		}
	}
}
