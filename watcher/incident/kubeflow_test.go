package incident

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	pyTorchText = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {namespace: ml, name: ft, uid: t, resourceVersion: "7", creationTimestamp: "2026-11-20T10:00:00Z"}, spec: {runPolicy: {suspend: false}, pytorchReplicaSpecs: {
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, resources: {limits: {nvidia.com/gpu: "4"}}}]}}},
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, resources: {limits: {nvidia.com/gpu: "1"}}}]}}}}},
  status: {conditions: [{type: Created, status: "True"}]}}`
	jobSetText = `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {namespace: ml, name: ft, uid: t, resourceVersion: "7", creationTimestamp: "2026-11-20T10:00:00Z"}, spec: {replicatedJobs: [
    {name: prepare, replicas: 1, template: {spec: {template: {spec: {containers: [{name: main, resources: {limits: {cpu: "1"}}}]}}}}},
    {name: node, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: "8"}}}]}}}}},
    {name: report, replicas: 1, template: {spec: {template: {spec: {containers: [{name: main}]}}}}}]}}`
)

func at(minute int) metav1.Time {
	return metav1.Time{Time: time.Date(2026, 11, 20, 11, minute, 0, 0, time.UTC)}
}

// lacked is who lacks pods of an object, of which an event has told at minute 9 at the latest.
func lacked(t *testing.T, kind schema.GroupKind, reason string, o *unstructured.Unstructured, pods []*corev1.Pod, jobs []*batchv1.Job, edit func(*Makers)) string {
	t.Helper()
	h, ok := HeldOf(kind, o)
	if !ok {
		t.Fatal("it is not read")
	}
	e := &corev1.Event{Reason: reason, Type: corev1.EventTypeWarning, Message: "refused", FirstTimestamp: at(1), LastTimestamp: at(9),
		InvolvedObject: corev1.ObjectReference{APIVersion: o.GetAPIVersion(), Kind: kind.Kind, Namespace: "ml", Name: "ft", UID: "t"}}
	m := Makers{Held: []*Held{h}, Events: []*corev1.Event{e}, Jobs: jobs, AllPods: true, AllJobs: true}
	if edit != nil {
		edit(&m)
	}
	var got []string
	for _, r := range m.Refusals(pods, nobody) {
		if r.Owner != (Ref{KindOf(kind), "ml", "ft"}) || Topmost(r.Pod, nobody) != r.Owner || r.Says != "refused" || r.Version != "7" || !r.Since.Equal(at(1).Time) {
			t.Errorf("%+v", r)
		}
		text := strings.TrimSpace(fmt.Sprintf("%d of %d %s %s%s %s", r.Missing, r.Wants, r.Pod.Name, r.Set.At, strings.TrimPrefix(r.Set.Wants, r.Set.At), r.Pod.Spec.SchedulerName))
		for _, l := range r.Later {
			text += fmt.Sprintf(", then %d of %s", l.Missing, l.Name)
		}
		got = append(got, text)
	}
	return strings.Join(got, "; ")
}

func set(t *testing.T, o *unstructured.Unstructured, to any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, to, path...); err != nil {
		t.Fatal(err)
	}
}

// A job of Kubeflow's operator lacks the pods of every type of which it could not make all: it goes through
// them in no order, and one that has ended is there.
func TestAKubeflowJobLacksPods(t *testing.T) {
	made := func(role string, minute int, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprint(role, minute), CreationTimestamp: at(minute), Labels: map[string]string{kubeflowJob: "ft", kubeflowRole: role},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Name: "ft", UID: "t", Controller: new(true)}}}, Status: corev1.PodStatus{Phase: phase}}
	}
	const (
		master  = "1 of 1 ft-master-? spec.pytorchReplicaSpecs.Master.replicas"
		workers = "2 of 2 ft-worker-? spec.pytorchReplicaSpecs.Worker.replicas"
	)
	for name, k := range map[string]struct {
		edit func(*unstructured.Unstructured)
		pods []*corev1.Pod
		with func(*Makers)
		want string
	}{
		"all":                    {want: master + "; " + workers},
		"the master is there":    {pods: []*corev1.Pod{made("master", 2, corev1.PodPending)}, want: workers},
		"a worker is there":      {pods: []*corev1.Pod{made("master", 2, corev1.PodRunning), made("worker", 3, corev1.PodRunning)}, want: "1 of 2" + strings.TrimPrefix(workers, "2 of 2")},
		"one has ended":          {pods: []*corev1.Pod{made("master", 2, corev1.PodSucceeded)}, want: workers},
		"all are there":          {pods: []*corev1.Pod{made("master", 2, corev1.PodRunning), made("worker", 3, corev1.PodRunning), made("worker", 4, corev1.PodRunning)}},
		"one was made since":     {pods: []*corev1.Pod{made("master", 10, corev1.PodPending)}},
		"pods are not all known": {with: func(m *Makers) { m.AllPods = false }},
		"nothing is told":        {with: func(m *Makers) { m.Events = nil }},
		"it is suspended":        {edit: func(o *unstructured.Unstructured) { set(t, o, true, "spec", "runPolicy", "suspend") }},
		"another cluster makes them": {edit: func(o *unstructured.Unstructured) {
			set(t, o, "kueue.x-k8s.io/multikueue", "spec", "runPolicy", "managedBy")
		}},
		"it is over": {edit: func(o *unstructured.Unstructured) {
			set(t, o, []any{map[string]any{"type": "Succeeded", "status": "True"}}, "status", "conditions")
		}},
		"it has failed": {edit: func(o *unstructured.Unstructured) {
			set(t, o, []any{map[string]any{"type": "Failed", "status": "True"}}, "status", "conditions")
		}},
		"no workers are wanted": {edit: func(o *unstructured.Unstructured) {
			set(t, o, int64(0), "spec", "pytorchReplicaSpecs", "Worker", "replicas")
		}, want: master},
		"as many as by default": {edit: func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "spec", "pytorchReplicaSpecs", "Worker", "replicas")
		}, want: master + "; 1 of 1 ft-worker-? spec.pytorchReplicaSpecs.Worker"},
		"it makes no sense": {edit: func(o *unstructured.Unstructured) { set(t, o, "x", "spec") }},
		"its group is Volcano's": {with: func(m *Makers) {
			g, _ := HeldOf(VolcanoGroup, object(t, `{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {namespace: ml, name: ft, ownerReferences: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: ft, uid: t, controller: true}]}, status: {phase: Running}}`))
			m.Held = append(m.Held, g)
		}, pods: []*corev1.Pod{made("master", 2, corev1.PodPending)}, want: workers + " volcano"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, pyTorchText)
			if k.edit != nil {
				k.edit(o)
			}
			if got := lacked(t, PyTorchJob, "FailedCreatePod", o, k.pods, nil, k.with); got != k.want {
				t.Errorf("got  %s\nwant %s", got, k.want)
			}
		})
	}
}

// A JobSet lacks the pods of the first replicated Job of which it could not make all: of Jobs that are there
// others tell.
func TestAJobSetLacksJobs(t *testing.T) {
	made := func(name string, minute int) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, CreationTimestamp: at(minute),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "ft", UID: "t", Controller: new(true)}}}, Spec: batchv1.JobSpec{Suspend: new(true)}}
	}
	const (
		first = "1 of 1 ft-prepare-? spec.replicatedJobs[name=prepare].replicas, then 4 of node, then 1 of report"
		nodes = " of 4 ft-node-? spec.replicatedJobs[name=node], then 1 of report"
	)
	for name, k := range map[string]struct {
		edit func(*unstructured.Unstructured)
		jobs []*batchv1.Job
		with func(*Makers)
		want string
	}{
		"none is there":              {want: first},
		"the first is there":         {jobs: []*batchv1.Job{made("ft-prepare-0", 2)}, want: "4" + nodes},
		"one of the second, too":     {jobs: []*batchv1.Job{made("ft-prepare-0", 2), made("ft-node-1", 3)}, want: "2" + nodes},
		"one was made since":         {jobs: []*batchv1.Job{made("ft-prepare-0", 10)}},
		"another's":                  {jobs: []*batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "ft-prepare-0"}, Spec: batchv1.JobSpec{Suspend: new(true)}}}, want: first},
		"of another name":            {jobs: []*batchv1.Job{made("ft-prepare-more-0", 2)}, want: first},
		"Jobs are not all known":     {with: func(m *Makers) { m.AllJobs = false }},
		"it is suspended":            {edit: func(o *unstructured.Unstructured) { set(t, o, true, "spec", "suspend") }},
		"another cluster makes them": {edit: func(o *unstructured.Unstructured) { set(t, o, "kueue.x-k8s.io/multikueue", "spec", "managedBy") }},
		"it is over": {edit: func(o *unstructured.Unstructured) {
			set(t, o, []any{map[string]any{"type": "Completed", "status": "True"}}, "status", "conditions")
		}},
		"it makes no sense": {edit: func(o *unstructured.Unstructured) { set(t, o, "x", "spec", "replicatedJobs") }},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, jobSetText)
			if k.edit != nil {
				k.edit(o)
			}
			if got := lacked(t, JobSet, "JobCreationFailed", o, nil, k.jobs, k.with); got != k.want {
				t.Errorf("got  %s\nwant %s", got, k.want)
			}
		})
	}
}
