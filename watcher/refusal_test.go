package watcher

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// A storm of failed replicas is one incident, of as many as their owner lacks, until it has all it wants:
// then they only lie around.
func TestStormsEndWithTheirOwner(t *testing.T) {
	storm := func(rs *appsv1.ReplicaSet, more ...*corev1.Pod) []incident.Incident {
		pods := more
		for n := range 500 {
			p := incidenttest.ReplicaOf(rs, fmt.Sprintf("serve-1-%03d", n))
			p.Spec.NodeName, p.Status = "gpu-1", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError"}
			pods = append(pods, p)
		}
		return incident.Group(pods, incidenttest.Deployments(rs))
	}
	i := storm(incidenttest.ReplicaSet(2, 2, 1, false))
	if len(i) != 1 || i[0].Waiting != 1 || i[0].Missing != 0 || len(i[0].Pods) != incident.MaxPods || i[0].Pods[0] != (incident.PodRef{Name: "serve-1-000", UID: "uid-serve-1-000", Reason: "Failed/UnexpectedAdmissionError"}) || i[0].Newest != "50" {
		t.Errorf("one of two is ready: %+v", i)
	}
	if i := storm(incidenttest.ReplicaSet(2, 2, 2, false)); len(i) != 0 {
		t.Errorf("two of two are ready: %+v", i)
	}
	if i := storm(incidenttest.ReplicaSet(0, 0, 0, false)); len(i) != 0 {
		t.Errorf("none is wanted: %+v", i)
	}
	rs := incidenttest.ReplicaSet(2, 2, 0, false)
	var running []*corev1.Pod
	for _, name := range []string{"a", "b"} {
		p := incidenttest.ReplicaOf(rs, name)
		p.Spec.NodeName, p.Status = "gpu-1", corev1.PodStatus{Phase: corev1.PodRunning}
		running = append(running, p)
	}
	if i := storm(rs, running[0]); len(i) != 1 || i[0].Waiting != 1 || len(i[0].Pods) != incident.MaxPods {
		t.Errorf("one of two runs: %+v", i)
	}
	if i := storm(rs, running...); len(i) != 0 {
		t.Errorf("two of two run: %+v", i)
	}
	again := incidenttest.ReplicaSet(2, 2, 2, false)
	failed := incidenttest.ReplicaOf(again, "x")
	failed.Spec.NodeName, failed.Status = "gpu-1", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}
	again.UID = "another"
	if i := incident.Group([]*corev1.Pod{failed}, incidenttest.Deployments(again)); len(i) != 1 {
		t.Errorf("its owner is gone, another of that name is ready: %+v", i)
	}
}

// A Job that gave up on what the kubelet refused still has its incident; one that
// was done in the end has none.
func TestJobsThatGaveUpStay(t *testing.T) {
	for condition, want := range map[batchv1.JobConditionType]int{batchv1.JobFailed: 1, batchv1.JobComplete: 0} {
		j := incidenttest.Job(func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue}}
		})
		p := incidenttest.WaitingPod("train-a", "nvidia.com/gpu", incidenttest.Owned("Job", "train"))
		p.OwnerReferences[0].UID, p.Spec.NodeName, p.Status = j.UID, "gpu-1", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "TopologyAffinityError"}
		got := incident.Group([]*corev1.Pod{p}, func(kind, _, _ string) (metav1.Object, bool) { return j, kind == "Job" })
		if len(got) != want {
			t.Errorf("%s: %+v, want %d", condition, got, want)
		}
	}
}
