package view

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// Trials of an experiment are one incident and not one team: a trial that runs ends on its own,
// and its members do not wait for those of another.
func TestTrialsAreTeamsOfTheirOwn(t *testing.T) {
	by := func(apiVersion, kind, name string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &yes}}
	}
	meta := func(kind, name string, owner []metav1.OwnerReference) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "kubeflow.org/v1", Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, OwnerReferences: owner}}
	}
	trial, tune := by("kubeflow.org/v1", "Trial", "one"), by("kubeflow.org/v1", "Experiment", "tune")
	w := &Cluster{State: &cluster.State{Owners: []*metav1.PartialObjectMetadata{meta("PyTorchJob", "bert", trial), meta("Trial", "one", tune), meta("Experiment", "tune", nil)},
		Jobs: []*batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "j", OwnerReferences: trial}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "plain"}}}}}
	for name, tc := range map[string]struct {
		owner            []metav1.OwnerReference
		top, team, meets string
	}{
		"of a PyTorchJob": {by("kubeflow.org/v1", "PyTorchJob", "bert"), "Experiment.kubeflow.org", "PyTorchJob.kubeflow.org", "PyTorchJob.kubeflow.org"},
		"of a Job":        {by("batch/v1", "Job", "j"), "Experiment.kubeflow.org", "Trial.kubeflow.org", "Experiment.kubeflow.org"},
		"of a Job alone":  {by("batch/v1", "Job", "plain"), "Job", "Job", "Job"},
		"bare":            {nil, "Pod", "Pod", "Pod"},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", OwnerReferences: tc.owner}}
		if top, team, of := w.WorkloadOf(p).Kind, incident.Ref(w.TeamOf(p)).Kind, w.MemberOf(p).Kind; top != tc.top || team != tc.team || of != tc.meets {
			t.Errorf("%s: %s, %s, %s; want %s, %s, %s", name, top, team, of, tc.top, tc.team, tc.meets)
		}
	}
}

// A pod whose owner is made by another pod is of that one's workload, one team with it: the leader
// of a group owns the StatefulSet of its workers.
func TestWhatALeaderOwns(t *testing.T) {
	by := func(apiVersion, kind, name string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &yes}}
	}
	pod := func(name string, owner []metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, OwnerReferences: owner}}
	}
	set := func(name string, owner []metav1.OwnerReference) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, OwnerReferences: owner}, Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Hostname: name}}}}
	}
	leader, worker, lone := pod("llm-0", by("apps/v1", "StatefulSet", "llm")), pod("llm-0-1", by("apps/v1", "StatefulSet", "llm-0")), pod("gone-0-1", by("apps/v1", "StatefulSet", "gone-0"))
	w := &Cluster{State: &cluster.State{Pods: []*corev1.Pod{leader, worker, lone}, StatefulSets: []*appsv1.StatefulSet{
		set("llm", by("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llm")), set("llm-0", by("v1", "Pod", "llm-0")), set("gone-0", by("v1", "Pod", "gone-0"))}}}
	for _, tc := range []struct {
		of                *corev1.Pod
		top, team, madeOf string
	}{
		{leader, "LeaderWorkerSet.leaderworkerset.x-k8s.io/llm", "LeaderWorkerSet.leaderworkerset.x-k8s.io/llm", "llm"},
		{worker, "LeaderWorkerSet.leaderworkerset.x-k8s.io/llm", "LeaderWorkerSet.leaderworkerset.x-k8s.io/llm", "llm-0"},
		{lone, "Pod/gone-0", "Pod/gone-0", "gone-0"}, // its leader is away
	} {
		top, team := w.WorkloadOf(tc.of), w.TeamOf(tc.of)
		spec, _ := w.MadeFrom(tc.of)
		if got := top.Kind + "/" + top.Name; got != tc.top || team.Kind+"/"+team.Name != tc.team || spec == nil || spec.Hostname != tc.madeOf {
			t.Errorf("%s: %s, team %v, made from %+v; want %s, %s, %s", tc.of.Name, got, team, spec, tc.top, tc.team, tc.madeOf)
		}
	}
	if spec, _ := w.MadeFrom(pod("bare", nil)); spec != nil {
		t.Errorf("a bare pod is made from %+v", spec)
	}
}
