package tally

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
	"github.com/unpend/unpend/watcher/owners/ownerstest"
)

// withTrials is the tally in a cluster that has Trials and Experiments, which are read.
func withTrials(rem *v1alpha1.Remediation, objects []runtime.Object, trials ...runtime.Object) *Tally {
	client := fake.NewClientset(objects...)
	ownerstest.Serve(client)
	return New(client, ownerstest.Reader(trials...), rem)
}

// A pod belongs to the workload that its incident was found for: who carries the plan out walks
// through the same kinds, Kubernetes' own and those that are named.
func TestBelongs(t *testing.T) {
	const api = "kubeflow.org/v1beta1"
	job := func(name string, owner ...metav1.OwnerReference) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, OwnerReferences: owner}}
	}
	objects := []runtime.Object{job("plain"), job("of-trial", ownerstest.By(api, "Trial", "one")...), job("of-cron", ownerstest.By("batch/v1", "CronJob", "nightly")...),
		&batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "nightly", OwnerReferences: ownerstest.By(api, "Experiment", "tune")}}}
	trials := []runtime.Object{ownerstest.Object("Trial", "one", ownerstest.By(api, "Experiment", "tune")...), ownerstest.Object("Experiment", "tune")}
	rem := &v1alpha1.Remediation{}
	read, unread := withTrials(rem, objects, trials...), New(fake.NewClientset(objects...), owners.Reader{}, rem)
	for _, tc := range []struct {
		as  *Tally
		job string
		of  incident.Ref
	}{
		{read, "plain", incident.Ref{Kind: "Job", Namespace: "ml", Name: "plain"}},
		{read, "of-trial", incident.Ref{Kind: "Experiment.kubeflow.org", Namespace: "ml", Name: "tune"}},
		{read, "of-cron", incident.Ref{Kind: "Experiment.kubeflow.org", Namespace: "ml", Name: "tune"}},
		{unread, "of-trial", incident.Ref{Kind: "Trial.kubeflow.org", Namespace: "ml", Name: "one"}},
		{unread, "of-cron", incident.Ref{Kind: "Experiment.kubeflow.org", Namespace: "ml", Name: "tune"}},
	} {
		p := podOf("Job", tc.job, "p", "")
		if got := incident.Topmost(p, tc.as.owners(t.Context())); got != tc.of {
			t.Errorf("%s: %v, want %v", tc.job, got, tc.of)
		}
		for _, of := range []incident.Ref{tc.of, {Kind: "Experiment", Namespace: "ml", Name: "tune"}, {Kind: "Job", Namespace: "ml", Name: "another"}} {
			if rem.Spec.Workload = of; tc.as.belongs(t.Context(), p) != (of == tc.of) {
				t.Errorf("%s belongs to %v: %v", tc.job, of, of != tc.of)
			}
		}
	}
}
