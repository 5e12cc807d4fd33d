package view

import (
	"testing"

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
