package cluster

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
)

func boundPod(name string, at time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name},
		Spec: corev1.PodSpec{NodeName: "gpu-1", Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("1")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}},
	}
}

func TestHoldersKnown(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	held := boundPod("held", at.Add(-time.Minute))
	ended := boundPod("ended", at.Add(time.Minute))
	ended.Status.Phase = corev1.PodSucceeded
	plain := boundPod("plain", at.Add(time.Minute))
	plain.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
	elsewhere := boundPod("elsewhere", at.Add(time.Minute))
	elsewhere.Spec.NodeName = "gpu-2"
	later := boundPod("held", at.Add(2*time.Second))
	sameSecond := boundPod("held", at)
	moved := boundPod("held", at.Add(-time.Minute))
	moved.Spec.NodeName = "gpu-2"
	cases := []struct {
		name string
		age  time.Duration
		pods []*corev1.Pod
		why  string
	}{
		{"known", time.Minute, []*corev1.Pod{held}, ""},
		{"deleted since", time.Minute, nil, "pod ml/held, a holder in its report, is not on it any more, so holders are unknown"},
		{"recreated elsewhere", time.Minute, []*corev1.Pod{moved}, "pod ml/held, a holder in its report, is not on it any more, so holders are unknown"},
		{"five minutes are not too old", 5 * time.Minute, []*corev1.Pod{held}, ""},
		{"too old", 7*time.Minute + 30*time.Second, []*corev1.Pod{held}, "its report is 7 min old, so holders are unknown"},
		{"bound later", time.Minute, []*corev1.Pod{later}, "pod ml/held was bound after its report, so holders are unknown"},
		{"bound within the second of the report", time.Minute, []*corev1.Pod{sameSecond}, ""},
		{"not named by the report", time.Minute, []*corev1.Pod{held, boundPod("new", at.Add(-time.Second))}, "pod ml/new was bound after its report, so holders are unknown"},
		{"ended, without a GPU, on another node", time.Minute, []*corev1.Pod{held, ended, plain, elsewhere}, ""},
	}
	for _, c := range cases {
		s := &State{Now: at.Add(c.age), Pods: c.pods, Geometries: map[string]*nodeprobe.NodeGeometry{"gpu-1": {
			Report: nodeprobe.Report{ObservedAt: metav1.NewTime(at), GPUs: []nodeprobe.GPU{{
				Instances: []nodeprobe.Instance{{Profile: "1g.5gb", Holder: &nodeprobe.Holder{Namespace: "ml", Pod: "held", Container: "c"}}, {Profile: "1g.5gb", Start: 1}}}}}}}}
		known, why := s.HoldersKnown("gpu-1")
		if known != (c.why == "") || why != c.why {
			t.Errorf("%s: %v, %q, want %q", c.name, known, why, c.why)
		}
		if known, why := s.HoldersKnown("gpu-9"); known || why != "no NodeGeometry" {
			t.Errorf("a node without a report: %v, %q", known, why)
		}
	}
}

func TestLookups(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ml", Name: name} }
	s := &State{Pods: []*corev1.Pod{{ObjectMeta: meta("a"), Spec: corev1.PodSpec{NodeName: "gpu-1"}}, {ObjectMeta: meta("b")}},
		ReplicaSets: []*appsv1.ReplicaSet{{ObjectMeta: meta("x")}}, CronJobs: []*batchv1.CronJob{{ObjectMeta: meta("x")}}}
	if p := s.Pod("ml", "b"); p == nil || p.Name != "b" || s.Pod("other", "b") != nil {
		t.Errorf("pod ml/b: %v", p)
	}
	if on := s.PodsOn("gpu-1"); len(on) != 1 || on[0].Name != "a" || len(s.PodsOn("gpu-2")) != 0 {
		t.Errorf("on gpu-1: %v", on)
	}
	for _, kind := range []string{"ReplicaSet", "CronJob"} {
		if o, ok := s.Owner(kind, "ml", "x"); !ok || o.GetName() != "x" {
			t.Errorf("%s: %v, %v", kind, o, ok)
		}
	}
	if o, ok := s.Owner("Job", "ml", "x"); ok {
		t.Errorf("a Job that is not there: %v", o)
	}
}
