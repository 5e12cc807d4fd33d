package tally

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
	"github.com/unpend/unpend/watcher/owners/ownerstest"
)

// podOf is a pod of a controller; it waits where it has no node, else it runs.
func podOf(kind, owner, name, node string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(owner), Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if node != "" {
		p.Status.Phase = corev1.PodRunning
	}
	return p
}

// What a plan is held to afterwards: the pods of its workload that wait, and those that run
// on the nodes it touches and of its workload, without those it names and those of the node.
func TestBefore(t *testing.T) {
	own, victim, preempted := podOf("Job", "training", "training-0", "gpu-3"), podOf("ReplicaSet", "web", "web-0", "gpu-1"), podOf("ReplicaSet", "api", "api-0", "gpu-2")
	ended, leaves := podOf("Job", "other", "ended", "gpu-1"), podOf("Job", "other", "leaves", "gpu-1")
	ended.Status.Phase, leaves.DeletionTimestamp = corev1.PodSucceeded, new(metav1.Now())
	st := &cluster.State{Pods: []*corev1.Pod{own, victim, preempted, ended, leaves, podOf("Job", "training", "training-1", ""), podOf("Job", "training", "training-2", ""),
		podOf("Job", "other", "waits-too", ""), podOf("DaemonSet", "dcgm", "dcgm-1", "gpu-1"), podOf("Job", "other", "beside", "gpu-1"), podOf("Job", "other", "beside-preempted", "gpu-2"), podOf("Job", "other", "far", "gpu-9"), podOf("Job", "other", "lands-beside", "gpu-4")}}
	rem := &v1alpha1.Remediation{Spec: v1alpha1.RemediationSpec{Actions: []diagnosis.Action{{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: "web-0", UID: "web-0"}}}}}
	rem.Spec.Waiting = []v1alpha1.Pod{{Name: "training-1", UID: "training-1"}}
	st.Pods = append(st.Pods, podOf("ReplicaSet", "web", "web-9", ""))
	rem.Spec.Workload, rem.Spec.Nodes, rem.Spec.Node = incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, []string{"gpu-1"}, "gpu-4"
	fix := diagnosis.Fix{Cost: diagnosis.Cost{Evictions: []diagnosis.PodName{{Namespace: "ml", Name: "api-0"}}}, Effect: &diagnosis.Effect{WaitingAfter: 2}}
	b := Before(rem, st, fix)
	var running []string
	for _, w := range b.Running {
		running = append(running, w.Name)
	}
	if want := []string{"training-0", "beside", "beside-preempted", "lands-beside"}; b.Waiting != 2 || *b.Announced != 4 || !slices.Equal(running, want) {
		t.Errorf("%d wait, %d announced, %q run, want %q", b.Waiting, *b.Announced, running, want)
	}
	if got, want := fmt.Sprint(b.Workloads), "[{Job ml training} {ReplicaSet ml web} {ReplicaSet ml api}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if b.Running[0] != (v1alpha1.Watched{Namespace: "ml", Name: "training-0", UID: "training-0", OwnerKind: "Job", Owner: "training"}) {
		t.Errorf("%+v", b.Running[0])
	}
}

// What came of a plan otherwise than was said is said; what ended by itself, or was deleted
// with its workload by somebody, is not.
func TestAfter(t *testing.T) {
	job := func(done bool) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "other"}}
		if done {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}
		return j
	}
	web := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web"}}
	phase := func(p *corev1.Pod, phase corev1.PodPhase, disrupted bool) *corev1.Pod {
		p.Status.Phase = phase
		if disrupted {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		}
		return p
	}
	leaves := podOf("ReplicaSet", "web", "web-0", "gpu-1")
	leaves.DeletionTimestamp, leaves.Finalizers = new(metav1.Now()), []string{"x/y"}
	waiting := func(names ...string) (out []runtime.Object) {
		for _, n := range names {
			out = append(out, podOf("Job", "training", n, ""))
		}
		return out
	}
	watch := func(kind, owner, name string) []v1alpha1.Watched {
		return []v1alpha1.Watched{{Namespace: "ml", Name: name, UID: types.UID(name), OwnerKind: kind, Owner: owner}}
	}
	two := 2
	for _, tc := range []struct {
		name    string
		now     []runtime.Object
		running []v1alpha1.Watched
		was     int
		said    *int
		want    string
	}{
		{"fewer wait", waiting("a"), nil, 2, nil, ""},
		{"as many wait", waiting("a", "b"), nil, 2, nil, "as many wait as before (2)"},
		{"more wait", waiting("a", "b", "c"), nil, 2, nil, "more wait than before (3, it was 2)"},
		{"as many as were said", waiting("a", "b"), nil, 3, &two, ""},
		{"more than were said, others counted", append(waiting("a", "b"), podOf("Job", "victim", "v", ""), podOf("Job", "other", "o", "")), nil, 3, &two, "3 wait, 2 were announced"},
		{"it runs", []runtime.Object{podOf("ReplicaSet", "web", "web-0", "gpu-1")}, watch("ReplicaSet", "web", "web-0"), 1, nil, ""},
		{"it ended", []runtime.Object{phase(podOf("Job", "other", "o", "gpu-1"), corev1.PodSucceeded, false)}, watch("Job", "other", "o"), 1, nil, ""},
		{"it failed", []runtime.Object{phase(podOf("Job", "other", "o", "gpu-1"), corev1.PodFailed, false)}, watch("Job", "other", "o"), 1, nil, ""},
		{"it was preempted", []runtime.Object{phase(podOf("Job", "other", "o", "gpu-1"), corev1.PodFailed, true)}, watch("Job", "other", "o"), 1, nil, "1 pod that was not named stopped: ml/o"},
		{"it leaves", []runtime.Object{leaves}, watch("ReplicaSet", "web", "web-0"), 1, nil, "1 pod that was not named stopped: ml/web-0"},
		{"it is gone", []runtime.Object{web}, watch("ReplicaSet", "web", "web-0"), 1, nil, "1 pod that was not named stopped: ml/web-0"},
		{"another of its name", []runtime.Object{web, func() *corev1.Pod { p := podOf("ReplicaSet", "web", "web-0", "gpu-1"); p.UID = "new"; return p }()}, watch("ReplicaSet", "web", "web-0"), 1, nil, "1 pod that was not named stopped: ml/web-0"},
		{"gone with its owner", nil, watch("ReplicaSet", "web", "web-0"), 1, nil, ""},
		{"of nobody, and gone", nil, watch("", "", "bare"), 1, nil, "1 pod that was not named stopped: ml/bare"},
		{"gone from a Job that goes on", []runtime.Object{job(false)}, watch("Job", "other", "o"), 1, nil, "1 pod that was not named stopped: ml/o"},
		{"gone from one that is complete", []runtime.Object{job(true)}, watch("Job", "other", "o"), 1, nil, ""},
		{"both, and many", append(waiting("a"), web), slices.Concat(watch("ReplicaSet", "web", "1"), watch("ReplicaSet", "web", "2"), watch("ReplicaSet", "web", "3"), watch("ReplicaSet", "web", "4"), watch("ReplicaSet", "web", "5"), watch("ReplicaSet", "web", "6")), 1, nil,
			"as many wait as before (1), and 6 pods that were not named stopped: ml/1, ml/2, ml/3, ml/4, ml/5, and 1 more"},
	} {
		rem := &v1alpha1.Remediation{}
		rem.Spec.Workload = incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}
		rem.Status.Pod, rem.Status.Journal = "ml/training-9", []v1alpha1.Entry{{Step: "run"}}
		rem.Status.Before = &v1alpha1.Before{Waiting: tc.was, Announced: tc.said, Running: tc.running, Workloads: []incident.Ref{rem.Spec.Workload, {Kind: "Job", Namespace: "ml", Name: "victim"}}}
		if got := New(fake.NewClientset(tc.now...), owners.Reader{}, rem).After(t.Context()); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	// Of what a named kind owns, as of a ReplicaSet's: who deleted that has stopped the pod.
	for now, want := range map[string]string{"one": "1 pod that was not named stopped: ml/p", "other": ""} {
		rem := &v1alpha1.Remediation{}
		rem.Status.Journal, rem.Status.Before = []v1alpha1.Entry{{Step: "run"}}, &v1alpha1.Before{Running: watch("Trial.kubeflow.org", "one", "p")}
		if got := withTrials(rem, nil, ownerstest.Object("Trial", now)).After(t.Context()); got != want {
			t.Errorf("trial %s: %q, want %q", now, got, want)
		}
	}
	// One that was turned back says who stopped, not who waits.
	rem := &v1alpha1.Remediation{}
	rem.Status.Journal, rem.Status.Before = []v1alpha1.Entry{{Step: "0/open"}}, &v1alpha1.Before{Waiting: 1, Running: watch("", "", "bare")}
	if got := New(fake.NewClientset(), owners.Reader{}, rem).After(t.Context()); got != "1 pod that was not named stopped: ml/bare" {
		t.Error(got)
	}
	rem.Status.Journal = nil // nothing was begun
	if got := New(fake.NewClientset(), owners.Reader{}, rem).After(t.Context()); got != "" {
		t.Error(got)
	}
}
