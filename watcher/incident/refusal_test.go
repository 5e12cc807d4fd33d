package incident

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// Who lacks pods because they were refused, and who lacks them for another reason.
func TestRefusals(t *testing.T) {
	later := incidenttest.WaitingPod("train-a", "nvidia.com/gpu", incidenttest.Owned("Job", "train"))
	later.CreationTimestamp = metav1.NewTime(incidenttest.Start.Add(10 * time.Minute))
	asked := []*corev1.Event{incidenttest.Refusing("Job", "train", 5*time.Minute)}
	sts := func(wants, has int32) []*appsv1.StatefulSet {
		return []*appsv1.StatefulSet{{ObjectMeta: incidenttest.Object("StatefulSet", "db", "61", nil), Spec: appsv1.StatefulSetSpec{Replicas: &wants, Template: incidenttest.GPUPods()}, Status: appsv1.StatefulSetStatus{Replicas: has}}}
	}
	deployment := &appsv1.Deployment{ObjectMeta: incidenttest.Object("Deployment", "serve", "49", nil), Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Template: incidenttest.GPUPods()},
		Status: appsv1.DeploymentStatus{Replicas: 1, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", LastTransitionTime: metav1.NewTime(incidenttest.Start)}}}}
	dying := incidenttest.ReplicaSet(4, 1, 1, true)
	dying.DeletionTimestamp = new(metav1.NewTime(incidenttest.Start))
	jobs := func(edit func(*batchv1.Job)) Makers {
		return Makers{Jobs: []*batchv1.Job{incidenttest.Job(edit)}, Events: asked}
	}
	done := func(c batchv1.JobConditionType) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: c, Status: corev1.ConditionTrue}}
		}
	}
	for name, c := range map[string]struct {
		makers Makers
		pods   []*corev1.Pod
		want   string // owner, missing of wanted, seconds since incidenttest.Start
	}{
		"a ReplicaSet's own condition":     {makers: Makers{ReplicaSets: []*appsv1.ReplicaSet{incidenttest.ReplicaSet(4, 1, 1, true)}}, want: "ReplicaSet/serve-1 3/4 60"},
		"a ReplicaSet that is rolled out":  {makers: Makers{ReplicaSets: []*appsv1.ReplicaSet{incidenttest.ReplicaSet(4, 1, 1, false)}}},
		"a ReplicaSet that has them all":   {makers: Makers{ReplicaSets: []*appsv1.ReplicaSet{incidenttest.ReplicaSet(4, 4, 0, true)}}},
		"a ReplicaSet that is deleted":     {makers: Makers{ReplicaSets: []*appsv1.ReplicaSet{dying}}},
		"a ReplicaSet's event alone":       {makers: Makers{ReplicaSets: []*appsv1.ReplicaSet{incidenttest.ReplicaSet(4, 1, 1, false)}, Events: []*corev1.Event{incidenttest.Refusing("ReplicaSet", "serve-1", time.Minute)}}, want: "ReplicaSet/serve-1 3/4 60"},
		"a Deployment whose sets are told": {makers: Makers{ReplicaSets: []*appsv1.ReplicaSet{incidenttest.ReplicaSet(4, 1, 1, true)}, Deployments: []*appsv1.Deployment{deployment}}, want: "ReplicaSet/serve-1 3/4 60"},
		"a Deployment without its sets":    {makers: Makers{Deployments: []*appsv1.Deployment{deployment}}, want: "Deployment/serve 2/3 0"},
		"a Job":                            {makers: jobs(func(j *batchv1.Job) { j.Status.Active = 1 }), want: "Job/train 3/4 60"},
		"a Job at its end":                 {makers: jobs(func(j *batchv1.Job) { j.Status.Succeeded = 5 }), want: "Job/train 1/1 60"},
		"a Job without events":             {makers: Makers{Jobs: oneJob(incidenttest.Job(func(*batchv1.Job) {}))}},
		"a Job that is suspended":          {makers: jobs(func(j *batchv1.Job) { j.Spec.Suspend = new(true) })},
		"a Job that its queue keeps suspended": {makers: jobs(func(j *batchv1.Job) {
			j.Spec.Suspend, j.Labels = new(true), map[string]string{QueueLabel: "team"}
		}), want: "Job/train 4/4 0"},
		"one of a queue that is done": {makers: jobs(func(j *batchv1.Job) {
			j.Spec.Suspend, j.Labels = new(true), map[string]string{QueueLabel: "team"}
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
		})},
		"a Job that is done":           {makers: jobs(done(batchv1.JobComplete))},
		"a Job that gave up":           {makers: jobs(done(batchv1.JobFailed))},
		"a Job whose queue is drained": {makers: jobs(func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded = nil, 1 })},
		"a Job that made a pod since":  {makers: jobs(func(*batchv1.Job) {}), pods: []*corev1.Pod{later}},
		"an event of its predecessor":  {makers: Makers{Jobs: oneJob(incidenttest.Job(func(*batchv1.Job) {})), Events: []*corev1.Event{incidenttest.About(incidenttest.Refusing("Job", "train", time.Minute), "another")}}},
		"an event without a uid":       {makers: Makers{Jobs: oneJob(incidenttest.Job(func(*batchv1.Job) {})), Events: []*corev1.Event{incidenttest.About(incidenttest.Refusing("Job", "train", time.Minute), "")}}, want: "Job/train 4/4 60"},
		"an event of nobody":           {makers: Makers{Events: asked}},
		"a StatefulSet":                {makers: Makers{StatefulSets: sts(3, 1), Events: []*corev1.Event{incidenttest.Refusing("StatefulSet", "db", time.Minute)}}, want: "StatefulSet/db 2/3 60"},
		"a DaemonSet": {makers: Makers{DaemonSets: []*appsv1.DaemonSet{{ObjectMeta: incidenttest.Object("DaemonSet", "agent", "62", nil), Spec: appsv1.DaemonSetSpec{Template: incidenttest.GPUPods()},
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 5, CurrentNumberScheduled: 3}}}, Events: []*corev1.Event{incidenttest.Refusing("DaemonSet", "agent", time.Minute)}}, want: "DaemonSet/agent 2/5 60"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, r := range c.makers.Refusals(c.pods, nobody) {
				got += fmt.Sprintf("%s/%s %d/%d %v", r.Owner.Kind, r.Owner.Name, r.Missing, r.Wants, r.Since.Sub(incidenttest.Start).Seconds())
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func oneJob(j *batchv1.Job) []*batchv1.Job { return []*batchv1.Job{j} }

// Pods that do not exist and pods that wait are one incident of the topmost owner,
// with the same id as either alone.
func TestMissingPodsJoinThoseThatWait(t *testing.T) {
	rs := incidenttest.ReplicaSet(4, 1, 0, true)
	refusals := Makers{ReplicaSets: []*appsv1.ReplicaSet{rs}}.Refusals(nil, nobody)
	pod := incidenttest.ReplicaOf(rs, "serve-1-a")
	alone := Group([]*corev1.Pod{pod}, incidenttest.Deployments(rs))
	both := Group([]*corev1.Pod{pod}, incidenttest.Deployments(rs), refusals...)
	none := Group(nil, incidenttest.Deployments(rs), refusals...)
	w := Ref{"Deployment", "ml", "serve"}
	requests := map[string]string{"nvidia.com/gpu": "1"}
	id := ID(w, requests)
	want := []Incident{{ID: id, Workload: w, Requests: requests, Pods: []PodRef{}, Waiting: 3, Missing: 3, Since: incidenttest.Start.Add(time.Minute), Newest: "50"}}
	if !reflect.DeepEqual(none, want) {
		t.Errorf("no pod exists: %+v, want %+v", none, want)
	}
	want = []Incident{{ID: id, Workload: w, Requests: requests, Pods: []PodRef{{"serve-1-a", "uid-serve-1-a", "Unschedulable"}}, Waiting: 4, Missing: 3, Since: incidenttest.Start, Newest: "50"}}
	if !reflect.DeepEqual(both, want) {
		t.Errorf("one waits: %+v, want %+v", both, want)
	}
	if len(alone) != 1 || alone[0].ID != id {
		t.Errorf("alone: %+v, want %s", alone, id)
	}
}

// A LimitRange's defaults are requests of the pod once it exists, so also before.
func TestLimitRangesDefaultTheMissingPod(t *testing.T) {
	lr := &corev1.LimitRange{ObjectMeta: incidenttest.Object("LimitRange", "limits", "1", nil), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
		DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("500m")}, Max: corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("1Gi")}, Min: corev1.ResourceList{"ephemeral-storage": resource.MustParse("1Gi")}}}}}
	other := lr.DeepCopy()
	other.Namespace, other.Spec.Limits[0].DefaultRequest["cpu"] = "other", resource.MustParse("3")
	got := Makers{ReplicaSets: []*appsv1.ReplicaSet{incidenttest.ReplicaSet(1, 0, 0, true)}, LimitRanges: []*corev1.LimitRange{other, lr}}.Refusals(nil, nobody)
	want := map[string]string{"nvidia.com/gpu": "1", "cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Gi"}
	if len(got) != 1 || !reflect.DeepEqual(Requests(got[0].Pod), want) {
		t.Errorf("got %+v, want %v", got, want)
	}
	if l := got[0].Pod.Spec.Containers[0].Resources.Limits; !l.Cpu().Equal(resource.MustParse("8")) || len(l) != 3 {
		t.Errorf("limits %v", l)
	}
}
