package incident

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// nobody is a Lookup that finds no owner.
func nobody(string, string, string) (metav1.Object, bool) { return nil, false }

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	volcanoJobText = `{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {namespace: ml, name: train, uid: j, resourceVersion: "7", creationTimestamp: "2026-11-20T10:00:00Z"}, spec: {queue: team, priorityClassName: high, tasks: [
  {name: master, replicas: 1, template: {metadata: {annotations: {a: b}}, spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: "1"}}}]}}},
  {name: worker, replicas: 2, template: {spec: {schedulerName: mine, containers: [{name: main, resources: {limits: {nvidia.com/gpu: "8"}}}]}}}]}, status: {state: {phase: Pending}}}`
	volcanoGroupText = `{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {namespace: ml, name: train-j, resourceVersion: "5", creationTimestamp: "2026-11-20T10:00:01Z", ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: train, uid: j, controller: true}]},
  spec: {queue: team, minMember: 3, minResources: {nvidia.com/gpu: "18", cpu: "3", pods: "3", count/pods: "3", requests.nvidia.com/gpu: "18"}}, status: {phase: Pending}}`
)

// A Job of Volcano whose group is not let in lacks the pods of each of its tasks; one that has a
// pod, that somebody has stopped, or whose group runs, lacks none by it. Where the Job itself is
// not read, its group tells what it can.
func TestVolcanoHoldsAJob(t *testing.T) {
	const tasks = "Job.batch.volcano.sh/ml/train 1 of train-master-? nvidia.com/gpu=1 by volcano in team, group train-j, of class high, since 10:00:01, as of 7\n" +
		"Job.batch.volcano.sh/ml/train 2 of train-worker-? nvidia.com/gpu=8 by mine in team, group train-j, of class high, since 10:00:01, as of 7"
	const alone = "Job.batch.volcano.sh/ml/train 3 of train-member-? cpu=1,nvidia.com/gpu=6 by volcano in team, group train-j, of class , since 10:00:01, as of 5"
	phase := func(o *unstructured.Unstructured, to any, path ...string) {
		if err := unstructured.SetNestedField(o.Object, to, path...); err != nil {
			t.Fatal(err)
		}
	}
	refusal := &corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Now()}, Reason: FailedCreate, Type: corev1.EventTypeWarning, Message: "exceeded quota: gpus",
		InvolvedObject: corev1.ObjectReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Namespace: "ml", Name: "train", UID: "j"}}
	type world struct {
		job, group *unstructured.Unstructured
		pods       []*corev1.Pod
		events     []*corev1.Event
	}
	pod := func(w *world, phase corev1.PodPhase) {
		w.pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", OwnerReferences: w.group.GetOwnerReferences()}, Status: corev1.PodStatus{Phase: phase}}}
	}
	for name, tc := range map[string]struct {
		edit func(*world)
		want string
	}{
		"not let in":              {func(*world) {}, tasks},
		"nobody has looked at it": {func(w *world) { delete(w.group.Object, "status"); delete(w.job.Object, "status") }, tasks},
		"let in without pods":     {func(w *world) { phase(w.group, "Inqueue", "status", "phase") }, tasks},
		"let in and refused": {func(w *world) {
			phase(w.group, "Inqueue", "status", "phase")
			w.events = []*corev1.Event{refusal}
		}, strings.ReplaceAll(tasks, " in team", " in  (exceeded quota: gpus)")},
		"refused before it went back": {func(w *world) { w.events = []*corev1.Event{refusal} }, tasks},
		"its group runs":              {func(w *world) { phase(w.group, "Running", "status", "phase") }, ""},
		"it was stopped":              {func(w *world) { phase(w.job, "Aborted", "status", "state", "phase") }, ""},
		"it has ended":                {func(w *world) { phase(w.job, "Completed", "status", "state", "phase") }, ""},
		"it is another of its name":   {func(w *world) { w.job.SetUID("k") }, ""},
		"it goes":                     {func(w *world) { w.job.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time}) }, ""},
		"its group goes":              {func(w *world) { w.group.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time}) }, ""},
		"a pod of it is there":        {func(w *world) { pod(w, corev1.PodPending) }, ""},
		"a pod of it has ended":       {func(w *world) { pod(w, corev1.PodSucceeded) }, tasks},
		"a task of no pods": {func(w *world) {
			w.job.Object["spec"].(map[string]any)["tasks"].([]any)[0].(map[string]any)["replicas"] = int64(0)
		}, tasks[strings.Index(tasks, "\n")+1:]},
		"it is not read": {func(w *world) { w.job = nil }, alone},
		"without equal shares": {func(w *world) {
			w.job = nil
			phase(w.group, "17", "spec", "minResources", "nvidia.com/gpu")
		}, strings.Replace(alone, "cpu=1,nvidia.com/gpu=6", "", 1)},
		"of bare pods": {func(w *world) {
			w.job = nil
			w.group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", Controller: new(true)}})
		}, ""},
		"of a Deployment": {func(w *world) {
			w.job = nil
			w.group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", Controller: new(true)}})
		}, ""},
		"of nobody":     {func(w *world) { w.group.SetOwnerReferences(nil) }, ""},
		"without group": {func(w *world) { w.group = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{job: object(t, volcanoJobText), group: object(t, volcanoGroupText)}
			tc.edit(w)
			m := Makers{Events: w.events}
			for _, o := range []*unstructured.Unstructured{w.job, w.group} {
				if o == nil {
					continue
				}
				h, ok := HeldOf(o.GroupVersionKind().GroupKind(), o)
				if !ok {
					t.Fatal("it is not read")
				}
				m.Held = append(m.Held, h.Trimmed(func(s corev1.PodSpec) corev1.PodSpec { return s }))
			}
			var got []string
			for _, r := range m.Refusals(w.pods, nobody) {
				says := ""
				if r.Says != "" {
					says = " (" + r.Says + ")"
				}
				var requests []string
				for _, name := range []string{"cpu", "nvidia.com/gpu"} {
					if q := Requests(r.Pod)[name]; q != "" {
						requests = append(requests, name+"="+q)
					}
				}
				got = append(got, fmt.Sprintf("%s/%s/%s %d of %s %s by %s in %s%s, group %s, of class %s, since %s, as of %s", r.Owner.Kind, r.Owner.Namespace, r.Owner.Name, r.Missing, r.Pod.Name, strings.Join(requests, ","), r.Pod.Spec.SchedulerName,
					r.Queue, says, r.Group, r.Pod.Spec.PriorityClassName, r.Since.UTC().Format("15:04:05"), r.Version))
				if r.Pod.Annotations[volcanoGroup] != "train-j" || Topmost(r.Pod, nobody) != r.Owner {
					t.Errorf("its pod is of %v, %v", Topmost(r.Pod, nobody), r.Pod.Annotations)
				}
			}
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), tc.want)
			}
		})
	}
}

// A Job of Volcano without a pod waits also where no PodGroup stands for it; not where one does, whatever
// has become of that, where it has begun or is over, or where pods are not known.
func TestJobsWithoutAGroup(t *testing.T) {
	const tasks = "1 of train-master-? in team as of 7, 2 of train-worker-? in team as of 7"
	phase := func(o *unstructured.Unstructured, to any, path ...string) {
		if err := unstructured.SetNestedField(o.Object, to, path...); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		edit func(job, group *unstructured.Unstructured) (with bool)
		pods []*corev1.Pod
		some bool
		want string
	}{
		"no group":            {edit: func(_, _ *unstructured.Unstructured) bool { return false }, want: tasks},
		"nobody looked at it": {edit: func(job, _ *unstructured.Unstructured) bool { delete(job.Object, "status"); return false }, want: tasks},
		"its queue is not named": {edit: func(job, _ *unstructured.Unstructured) bool {
			unstructured.RemoveNestedField(job.Object, "spec", "queue")
			return false
		}, want: strings.ReplaceAll(tasks, "team", "default")},
		"it is over": {edit: func(job, _ *unstructured.Unstructured) bool {
			phase(job, "Completed", "status", "state", "phase")
			return false
		}},
		"it goes": {edit: func(job, _ *unstructured.Unstructured) bool {
			job.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
			return false
		}},
		"its group has run": {edit: func(_, group *unstructured.Unstructured) bool {
			phase(group, "Completed", "status", "phase")
			return true
		}},
		"its group goes": {edit: func(_, group *unstructured.Unstructured) bool {
			group.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
			return true
		}},
		"another's group": {edit: func(_, group *unstructured.Unstructured) bool {
			group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "other", UID: "o", Controller: new(true)}})
			phase(group, "Completed", "status", "phase")
			return true
		}, want: tasks},
		"a pod of it is there": {edit: func(_, _ *unstructured.Unstructured) bool { return false }, pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "train", UID: "j", Controller: new(true)}}}}}},
		"pods are not all known": {edit: func(_, _ *unstructured.Unstructured) bool { return false }, some: true},
	} {
		t.Run(name, func(t *testing.T) {
			job, group := object(t, volcanoJobText), object(t, volcanoGroupText)
			m := Makers{AllPods: !tc.some}
			with := tc.edit(job, group)
			h, _ := HeldOf(VolcanoJob, job)
			m.Held = append(m.Held, h)
			if with {
				h, _ := HeldOf(VolcanoGroup, group)
				m.Held = append(m.Held, h)
			}
			var got []string
			for _, r := range m.Refusals(tc.pods, nobody) {
				got = append(got, fmt.Sprintf("%d of %s in %s as of %s", r.Missing, r.Pod.Name, r.Queue, r.Version))
				if !r.Ungrouped || r.Group != "" || r.Owner != (Ref{"Job.batch.volcano.sh", "ml", "train"}) {
					t.Errorf("%+v", r)
				}
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Whom two queues hold waits once; an object of a kind that no queue has is not read.
func TestHeldOnce(t *testing.T) {
	group := object(t, volcanoGroupText)
	twin := group.DeepCopy()
	twin.SetName("another")
	a, _ := HeldOf(VolcanoGroup, group)
	b, _ := HeldOf(VolcanoGroup, twin)
	if got := (Makers{Held: []*Held{a, b}}).Refusals(nil, nobody); len(got) != 1 || got[0].Group != "train-j" {
		t.Errorf("%+v", got)
	}
	if _, ok := HeldOf(group.GroupVersionKind().GroupKind(), group); !ok {
		t.Error("a PodGroup is not read")
	}
	other := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`)
	if _, ok := HeldOf(other.GroupVersionKind().GroupKind(), other); ok {
		t.Error("a ConfigMap is read")
	}
}

// What a queue writes of an object all the time is nothing new; what it holds is.
func TestSameHeld(t *testing.T) {
	read := func(edit func(*unstructured.Unstructured)) *Held {
		o := object(t, volcanoGroupText)
		edit(o)
		h, _ := HeldOf(VolcanoGroup, o)
		return h
	}
	before := read(func(*unstructured.Unstructured) {})
	if !before.Same(read(func(o *unstructured.Unstructured) {
		o.SetResourceVersion("99")
		o.Object["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Unschedulable"}}
	})) {
		t.Error("its words are news")
	}
	if before.Same(read(func(o *unstructured.Unstructured) { o.Object["status"].(map[string]any)["phase"] = "Running" })) {
		t.Error("that it runs is none")
	}
}

// Bare pods of one of Kueue's groups are one workload, its Workload's; a pod that somebody owns is its
// owner's, whatever group it is in.
func TestBarePodsOfAGroup(t *testing.T) {
	pod := func(name, group string, owners ...metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Labels: map[string]string{GroupLabel: group}, OwnerReferences: owners}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	}
	owned := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "s", Controller: new(true)}
	got := map[Ref]int{}
	for _, i := range Group([]*corev1.Pod{pod("a", "train"), pod("b", "train"), pod("c", "other"), pod("d", ""), pod("e", "train", owned)}, nobody) {
		got[i.Workload] = i.Waiting
	}
	want := map[Ref]int{{"Workload.kueue.x-k8s.io", "ml", "train"}: 2, {"Workload.kueue.x-k8s.io", "ml", "other"}: 1, {"Pod", "ml", "d"}: 1, {"StatefulSet", "ml", "s"}: 1}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, lost := Walk(pod("a", "train"), nobody); lost != nil {
		t.Errorf("%v is not read", lost)
	}
}
