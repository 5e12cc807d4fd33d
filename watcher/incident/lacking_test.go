package incident

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rayClusterText = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {namespace: ml, name: llm, uid: r, resourceVersion: "7", creationTimestamp: "2026-11-20T10:00:00Z"}, spec: {
  headGroupSpec: {template: {metadata: {labels: {team: a, ray.io/cluster: mine}}, spec: {containers: [{name: head, resources: {limits: {cpu: "2"}}}]}}},
  workerGroupSpecs: [
    {groupName: small, replicas: 1, minReplicas: 0, maxReplicas: 4, template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: "1"}}}]}}},
    {groupName: large, replicas: 2, minReplicas: 0, maxReplicas: 4, template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: "8"}}}]}}}]},
  status: {conditions: [{type: HeadPodReady, status: "True", reason: x}, {type: ReplicaFailure, status: "True", reason: FailedCreateWorkerPod, message: "FailedCreateWorkerPod\nexceeded quota: gpus", lastTransitionTime: "2026-11-20T11:00:00Z"}]}}`

// rayPod is a pod that KubeRay has made of a set of that RayCluster.
func rayPod(kind, group string, at time.Time) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: kind + group, CreationTimestamp: metav1.Time{Time: at}, Labels: map[string]string{rayCluster: "llm", rayNodeType: kind, rayGroup: group, "x": "y"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "llm", UID: "r", Controller: new(true)}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

// A RayCluster lacks the pods of the first of its sets that KubeRay could not make all of: as its own
// condition says, or an event that nothing was made after.
func TestARayClusterLacksPods(t *testing.T) {
	const condition = "status/conditions"
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 11, minute, 0, 0, time.UTC) }
	set := func(o *unstructured.Unstructured, to any, path ...string) {
		if err := unstructured.SetNestedField(o.Object, to, path...); err != nil {
			t.Fatal(err)
		}
	}
	group := func(o *unstructured.Unstructured, which int) map[string]any {
		return o.Object["spec"].(map[string]any)["workerGroupSpecs"].([]any)[which].(map[string]any)
	}
	failure := func(o *unstructured.Unstructured) map[string]any {
		return o.Object["status"].(map[string]any)["conditions"].([]any)[1].(map[string]any)
	}
	event := func(reason string, minute int) *corev1.Event {
		return &corev1.Event{Reason: reason, Type: corev1.EventTypeWarning, Message: "by event", FirstTimestamp: metav1.Time{Time: at(1)}, LastTimestamp: metav1.Time{Time: at(minute)},
			InvolvedObject: corev1.ObjectReference{APIVersion: "ray.io/v1", Kind: "RayCluster", Namespace: "ml", Name: "llm", UID: "r"}}
	}
	type world struct {
		o      *unstructured.Unstructured
		pods   []*corev1.Pod
		events []*corev1.Event
		some   bool
	}
	byEvent := func(reason string, minute int) func(*world) {
		return func(w *world) {
			delete(w.o.Object, "status")
			w.events = []*corev1.Event{event(reason, minute)}
		}
	}
	head, small, large := rayPod(rayHead, "headgroup", at(2)), rayPod(rayWorker, "small", at(3)), rayPod(rayWorker, "large", at(4))
	const (
		ofSmall = "1 of 1 llm-small-? nvidia.com/gpu=1 since 11:00 as spec.workerGroupSpecs[groupName=small].replicas: exceeded quota: gpus"
		ofLarge = "1 of 2 llm-large-? nvidia.com/gpu=8 since 11:00 as spec.workerGroupSpecs[groupName=large].replicas: exceeded quota: gpus"
	)
	for name, tc := range map[string]struct {
		edit func(*world)
		want string
	}{
		"the first group":  {func(w *world) { w.pods = []*corev1.Pod{head} }, ofSmall},
		"the second group": {func(w *world) { w.pods = []*corev1.Pod{head, small, large} }, ofLarge},
		"all are there":    {func(w *world) { w.pods = []*corev1.Pod{head, small, large, large} }, ""},
		"one of them has ended": {func(w *world) {
			ended := small.DeepCopy()
			ended.Status.Phase = corev1.PodFailed
			w.pods = []*corev1.Pod{head, ended}
		}, ofSmall},
		"another cluster's": {func(w *world) {
			other := small.DeepCopy()
			other.Labels[rayCluster] = "other"
			w.pods = []*corev1.Pod{head, other}
		}, ofSmall},
		"another namespace's": {func(w *world) {
			other := small.DeepCopy()
			other.Namespace = "other"
			w.pods = []*corev1.Pod{head, other}
		}, ofSmall},
		"the head":                          {func(w *world) { failure(w.o)["reason"] = "FailedCreateHeadPod" }, "1 of 1 llm-head-? cpu=2 since 11:00 as count(spec.headGroupSpec): FailedCreateWorkerPod\nexceeded quota: gpus"},
		"the head is there":                 {func(w *world) { failure(w.o)["reason"] = "FailedCreateHeadPod"; w.pods = []*corev1.Pod{head} }, ""},
		"a pod that it could not delete":    {func(w *world) { failure(w.o)["reason"] = "FailedDeleteWorkerPod" }, ""},
		"it could make one again":           {func(w *world) { failure(w.o)["status"] = "False" }, ""},
		"another condition of that reason":  {func(w *world) { failure(w.o)["type"] = "Other" }, ""},
		"a person has suspended it":         {func(w *world) { set(w.o, true, "spec", "suspend") }, ""},
		"another cluster is to make them":   {func(w *world) { set(w.o, "kueue.x-k8s.io/multikueue", "spec", "managedBy") }, ""},
		"KubeRay is to make them":           {func(w *world) { set(w.o, "ray.io/kuberay-operator", "spec", "managedBy"); w.pods = []*corev1.Pod{head} }, ofSmall},
		"it goes":                           {func(w *world) { w.o.SetDeletionTimestamp(&metav1.Time{Time: at(0)}) }, ""},
		"pods are not all known":            {func(w *world) { w.some = true }, ""},
		"the first group is suspended":      {func(w *world) { group(w.o, 0)["suspend"] = true; w.pods = []*corev1.Pod{large} }, ofLarge},
		"the first group wants none":        {func(w *world) { group(w.o, 0)["replicas"] = int64(0); w.pods = []*corev1.Pod{large} }, ofLarge},
		"no more than the most":             {func(w *world) { group(w.o, 0)["replicas"] = int64(9) }, strings.NewReplacer("1 of 1", "4 of 4", "as spec.workerGroupSpecs[groupName=small].replicas", "as ").Replace(ofSmall)},
		"at least the least":                {func(w *world) { group(w.o, 0)["minReplicas"] = int64(3) }, strings.NewReplacer("1 of 1", "3 of 3", "as spec.workerGroupSpecs[groupName=small].replicas", "as ").Replace(ofSmall)},
		"each of several hosts":             {func(w *world) { group(w.o, 0)["numOfHosts"] = int64(4) }, strings.NewReplacer("1 of 1", "4 of 4", "as spec.workerGroupSpecs[groupName=small].replicas", "as ").Replace(ofSmall)},
		"by an event":                       {byEvent("FailedToCreateWorkerPod", 9), strings.NewReplacer("11:00", "11:01", "exceeded quota: gpus", "by event").Replace(ofSmall)},
		"by an event, of the head":          {byEvent("FailedToCreateHeadPod", 9), "1 of 1 llm-head-? cpu=2 since 11:01 as count(spec.headGroupSpec): by event"},
		"by an event of another kind":       {byEvent("FailedToCreateService", 9), ""},
		"by an event before the newest pod": {func(w *world) { byEvent("FailedToCreateWorkerPod", 3)(w); w.pods = []*corev1.Pod{head, large} }, ""},
		"it makes no sense":                 {func(w *world) { set(w.o, "x", "spec", "workerGroupSpecs") }, ""},
		condition + " make no sense":        {func(w *world) { set(w.o, "x", "status", "conditions") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{o: object(t, rayClusterText)}
			tc.edit(w)
			h, ok := HeldOf(RayCluster, w.o)
			if !ok {
				t.Fatal("it is not read")
			}
			var got []string
			for _, r := range (Makers{Held: []*Held{h}, Events: w.events, AllPods: !w.some}).Refusals(w.pods, nobody) {
				asks := Requests(r.Pod)
				text := "cpu=" + asks["cpu"]
				if n := asks["nvidia.com/gpu"]; n != "" {
					text = "nvidia.com/gpu=" + n
				}
				got = append(got, fmt.Sprintf("%d of %d %s %s since %s as %s: %s", r.Missing, r.Wants, r.Pod.Name, text, r.Since.UTC().Format("15:04"), r.Set.Wants, r.Says))
				if r.Owner != (Ref{"RayCluster.ray.io", "ml", "llm"}) || Topmost(r.Pod, nobody) != r.Owner || r.Version != "7" || r.Queue != "" || r.Pod.Labels[rayCluster] != "llm" {
					t.Errorf("%+v", r)
				}
			}
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), tc.want)
			}
		})
	}
}

// Nobody has heard of what has no status and no pods long after it was made, of the kinds whose operators write one at their first
// look.
func TestNobodyHasHeardOfIt(t *testing.T) {
	made := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		edit func(*unstructured.Unstructured)
		now  time.Time
		pods []*corev1.Pod
		want string
	}{
		"long ago":               {nil, made.Add(silence + time.Second), nil, "1 of 1 since 10:00, unheard true"},
		"just now":               {nil, made.Add(silence), nil, ""},
		"nobody knows when":      {nil, time.Time{}, nil, ""},
		"it has a pod":           {nil, made.Add(time.Hour), []*corev1.Pod{rayPod(rayHead, "headgroup", made)}, ""},
		"a person suspended it":  {func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["suspend"] = true }, made.Add(time.Hour), nil, ""},
		"it was heard of":        {func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"state": ""} }, made.Add(time.Hour), nil, ""},
		"when it was made, none": {func(o *unstructured.Unstructured) { o.SetCreationTimestamp(metav1.Time{}) }, made.Add(time.Hour), nil, ""},
	} {
		o := object(t, rayClusterText)
		delete(o.Object, "status")
		if tc.edit != nil {
			tc.edit(o)
		}
		h, _ := HeldOf(RayCluster, o)
		got := ""
		for _, r := range (Makers{Held: []*Held{h}, AllPods: true, Now: tc.now}).Refusals(tc.pods, nobody) {
			got += fmt.Sprintf("%d of %d since %s, unheard %v", r.Missing, r.Wants, r.Since.UTC().Format("15:04"), r.Unheard)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// The sets behind the one that lacks a pod are not tried, and are told with what they lack.
func TestSetsBehind(t *testing.T) {
	small, large := rayPod(rayWorker, "small", time.Time{}), rayPod(rayWorker, "large", time.Time{})
	for name, tc := range map[string]struct {
		reason string
		pods   []*corev1.Pod
		want   string
	}{
		"behind the head":            {"FailedCreateHeadPod", nil, "small 1 of 1 spec.workerGroupSpecs[groupName=small].replicas, large 2 of 2 spec.workerGroupSpecs[groupName=large].replicas"},
		"some of them are there":     {"FailedCreateHeadPod", []*corev1.Pod{small, large}, "large 1 of 2 spec.workerGroupSpecs[groupName=large].replicas"},
		"behind a group":             {"FailedCreateWorkerPod", nil, "large 2 of 2 spec.workerGroupSpecs[groupName=large].replicas"},
		"nothing is behind the last": {"FailedCreateWorkerPod", []*corev1.Pod{small}, ""},
	} {
		h, _ := HeldOf(RayCluster, object(t, strings.ReplaceAll(rayClusterText, "FailedCreateWorkerPod", tc.reason)))
		var got []string
		for _, l := range (Makers{Held: []*Held{h}, AllPods: true}).Refusals(tc.pods, nobody)[0].Later {
			got = append(got, fmt.Sprintf("%s %d of %d %s", l.Name, l.Missing, l.Count, l.Wants))
		}
		if text := strings.Join(got, ", "); text != tc.want {
			t.Errorf("%s: %s, want %s", name, text, tc.want)
		}
	}
}

// Beside the head KubeRay runs Ray's autoscaler, and that counts, too.
func TestTheHeadsAutoscaler(t *testing.T) {
	for options, want := range map[string]string{"": "2500m", "autoscalerOptions: {resources: {requests: {cpu: \"1\"}}}, ": "3"} {
		h, _ := HeldOf(RayCluster, object(t, strings.NewReplacer("spec: {\n", "spec: {enableInTreeAutoscaling: true, "+options+"\n", "FailedCreateWorkerPod", "FailedCreateHeadPod").Replace(rayClusterText)))
		got := (Makers{Held: []*Held{h}, AllPods: true}).Refusals(nil, nobody)
		if len(got) != 1 || Requests(got[0].Pod)["cpu"] != want || got[0].Says != "exceeded quota: gpus" || got[0].Pod.Labels["team"] != "a" {
			t.Errorf("%q: %+v", options, got)
		}
	}
}

// Whom the API server refuses pods does not wait in a queue as well.
func TestRefusedAndQueued(t *testing.T) {
	ray, _ := HeldOf(RayCluster, object(t, rayClusterText))
	queued, _ := HeldOf(KueueWorkload, object(t, `{apiVersion: kueue.x-k8s.io/v1beta1, kind: Workload, metadata: {namespace: ml, name: w, ownerReferences: [{apiVersion: ray.io/v1, kind: RayCluster, name: llm, uid: r, controller: true}]}, spec: {queueName: q, podSets: [{name: head, count: 1, template: {spec: {}}}]}}`))
	for _, held := range [][]*Held{{ray, queued}, {queued, ray}} {
		if got := (Makers{Held: held, AllPods: true}).Refusals(nil, nobody); len(got) != 1 || got[0].Queue != "" {
			t.Errorf("%+v", got)
		}
	}
}

// What KubeRay says at each try, of another pod each time, is nothing new.
func TestTheSameSetback(t *testing.T) {
	as := func(s corev1.PodSpec) corev1.PodSpec { return s }
	a, _ := HeldOf(RayCluster, object(t, rayClusterText))
	b, _ := HeldOf(RayCluster, object(t, strings.ReplaceAll(rayClusterText, "exceeded quota: gpus", "exceeded quota: gpus, again")))
	c, _ := HeldOf(RayCluster, object(t, strings.ReplaceAll(rayClusterText, "ReplicaFailure", "Other")))
	if a.Trimmed(as); !a.Same(b.Trimmed(as)) || a.Same(c.Trimmed(as)) {
		t.Error("its words are news, or that it could make a pod is none")
	}
}

// Of a pod those labels are kept by which it is counted.
func TestMarks(t *testing.T) {
	ray, bare := rayPod(rayHead, "headgroup", time.Time{}), rayPod(rayHead, "headgroup", time.Time{})
	bare.OwnerReferences, bare.Labels[GroupLabel] = nil, "g"
	set := bare.DeepCopy()
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "s", Controller: new(true)}}
	for _, k := range []struct {
		pod  *corev1.Pod
		want string
	}{{ray, "map[ray.io/cluster:llm ray.io/group:headgroup ray.io/node-type:head]"}, {bare, "map[kueue.x-k8s.io/pod-group-name:g]"}, {set, "map[]"}} {
		if got := fmt.Sprint(Marks(k.pod)); got != k.want {
			t.Errorf("%s, want %s", got, k.want)
		}
	}
}
