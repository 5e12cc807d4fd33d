package incident

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// A pod that the kubelet refused waits until its owner has others in its place; one that
// nobody replaces waits on.
func TestWhoReplacesARefusedPod(t *testing.T) {
	refused := func(rs *appsv1.ReplicaSet) *corev1.Pod {
		p := incidenttest.ReplicaOf(rs, "serve-1-refused")
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "TopologyAffinityError"}
		p.ResourceVersion = "3"
		return p
	}
	runs := func(rs *appsv1.ReplicaSet, name string, edits ...func(*corev1.Pod)) *corev1.Pod {
		p := incidenttest.ReplicaOf(rs, name)
		p.Spec.NodeName, p.Status = "gpu-1", corev1.PodStatus{Phase: corev1.PodRunning}
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	for name, c := range map[string]struct {
		ready  int32 // of two that are wanted
		beside func(*appsv1.ReplicaSet) []*corev1.Pod
		edit   func(*appsv1.ReplicaSet, *corev1.Pod)
		gone   bool
		newest string // of the incident; empty: there is none
	}{
		"its owner lacks others":           {ready: 1, newest: "50"},
		"its owner has what it wants":      {ready: 2},
		"its owner has more":               {ready: 3},
		"they run and are not ready yet":   {beside: func(rs *appsv1.ReplicaSet) []*corev1.Pod { return []*corev1.Pod{runs(rs, "a"), runs(rs, "b")} }},
		"one runs":                         {beside: func(rs *appsv1.ReplicaSet) []*corev1.Pod { return []*corev1.Pod{runs(rs, "a")} }, newest: "50"},
		"its owner is gone":                {ready: 2, gone: true, newest: "3"},
		"its owner is another of its name": {ready: 2, edit: func(rs *appsv1.ReplicaSet, _ *corev1.Pod) { rs.UID = "former" }, newest: "3"},
		"it has no owner":                  {ready: 2, edit: func(_ *appsv1.ReplicaSet, p *corev1.Pod) { p.OwnerReferences = nil }, newest: "3"},
		"it waits as others do":            {ready: 2, edit: func(_ *appsv1.ReplicaSet, p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }, newest: "3"},
		"one of two is being deleted": {beside: func(rs *appsv1.ReplicaSet) []*corev1.Pod {
			return []*corev1.Pod{runs(rs, "a"), runs(rs, "b", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: incidenttest.Start} })}
		}, newest: "50"},
		"one of two is over": {beside: func(rs *appsv1.ReplicaSet) []*corev1.Pod {
			return []*corev1.Pod{runs(rs, "a"), runs(rs, "b", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}
		}, newest: "50"},
		"one of two is nobody's": {beside: func(rs *appsv1.ReplicaSet) []*corev1.Pod {
			return []*corev1.Pod{runs(rs, "a"), runs(rs, "b", func(p *corev1.Pod) { p.OwnerReferences = nil })}
		}, newest: "50"},
	} {
		t.Run(name, func(t *testing.T) {
			rs := incidenttest.ReplicaSet(2, 2, c.ready, false)
			rs.ResourceVersion = "50"
			pods := []*corev1.Pod{refused(rs)}
			if c.beside != nil {
				pods = append(pods, c.beside(rs)...)
			}
			if c.edit != nil {
				c.edit(rs, pods[0])
			}
			find := func(kind, namespace, name string) (metav1.Object, bool) {
				return rs, !c.gone && kind == "ReplicaSet" && namespace == rs.Namespace && name == rs.Name
			}
			got := Group(pods, find)
			if len(got) > 1 || len(got) == 1 && (got[0].Newest != c.newest || got[0].Waiting != 1) || len(got) == 0 && c.newest != "" {
				t.Errorf("%+v, want %q", got, c.newest)
			}
		})
	}
}

// Of pods that a kubelet has refused one after the other as many wait as are wanted.
func TestRefusedOneAfterTheOther(t *testing.T) {
	for name, c := range map[string]struct {
		wants, ready            int32
		refused, pending, waits int
	}{
		"one is wanted":                      {1, 0, 5, 0, 1},
		"two of three run":                   {3, 2, 4, 0, 1},
		"three are wanted":                   {3, 0, 5, 0, 3},
		"the next one waits already":         {1, 0, 5, 1, 1},
		"one waits, and one is to be made":   {2, 0, 5, 1, 2},
		"fewer were refused than are missed": {3, 0, 2, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			rs := incidenttest.ReplicaSet(c.wants, 0, c.ready, false)
			var pods []*corev1.Pod
			for i := range c.refused + c.pending {
				p := incidenttest.ReplicaOf(rs, fmt.Sprint("p", i))
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError"}
				if i >= c.refused {
					p.Status = corev1.PodStatus{Phase: corev1.PodPending}
				}
				pods = append(pods, p)
			}
			got := Group(pods, func(kind, _, _ string) (metav1.Object, bool) { return rs, kind == "ReplicaSet" })
			if len(got) != 1 || got[0].Waiting != c.waits || len(got[0].Pods) != c.refused+c.pending {
				t.Errorf("%+v, want %d", got, c.waits)
			}
		})
	}
}

// A workload waits since the first of those that were refused one after the other, and not since one that was refused long before:
// another had run since.
func TestSinceWhenTheNextOfRefusedPodsWaits(t *testing.T) {
	type refused struct{ made, began time.Duration }
	for name, c := range map[string]struct {
		refused []refused
		next    time.Duration // is made; 0: none is
		since   time.Duration
	}{
		"one after the other":                        {[]refused{{0, 0}, {2, 2}}, 4, 0},
		"long before the next":                       {[]refused{{0, 0}}, 600, 600},
		"two of before, and one of now":              {[]refused{{0, 0}, {300, 300}, {600, 600}}, 601, 600},
		"after it had waited for long":               {[]refused{{0, 599}}, 600, 0},
		"in the same second":                         {[]refused{{0, 0}}, 0, 0},
		"the clock of the node is ahead":             {[]refused{{0, 30}}, 30, 0},
		"nobody waits but those that were refused":   {[]refused{{0, 0}, {600, 600}}, -1, 0},
		"as late as a Job makes the next of its own": {[]refused{{0, 0}}, 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rs := incidenttest.ReplicaSet(1, 0, 0, false)
			at := func(minutes time.Duration) metav1.Time {
				return metav1.NewTime(incidenttest.Start.Add(minutes * time.Minute))
			}
			var pods []*corev1.Pod
			for i, r := range c.refused {
				p := incidenttest.ReplicaOf(rs, fmt.Sprint("p", i))
				p.CreationTimestamp, p.Status = at(r.made), corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", StartTime: new(at(r.began))}
				pods = append(pods, p)
			}
			if c.next >= 0 {
				p := incidenttest.ReplicaOf(rs, "next")
				p.CreationTimestamp, p.Status = at(c.next), corev1.PodStatus{Phase: corev1.PodPending}
				pods = append(pods, p)
			}
			got := Group(pods, func(kind, _, _ string) (metav1.Object, bool) { return rs, kind == "ReplicaSet" })
			if len(got) != 1 || !got[0].Since.Equal(at(c.since).Time) || got[0].Waiting != 1 {
				t.Errorf("%+v, want %s", got, at(c.since))
			}
		})
	}
}

// A Job that gave up replaces nothing: its pods that were refused are what there is to say.
func TestAJobThatGaveUpIsNeverSettled(t *testing.T) {
	for _, c := range []struct {
		failed         bool
		ready, running int
		settled        bool
	}{{false, 2, 0, true}, {false, 0, 2, true}, {false, 1, 1, false}, {false, 3, 0, true}, {true, 2, 2, false}} {
		if got := (maker{Wants: 2, failed: c.failed, ready: c.ready}).settled(c.running); got != c.settled {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// What a ReplicaSet's, and a Deployment's, own status says of refusals.
func TestOnlyAFailedCreateTellsOfRefusals(t *testing.T) {
	at := metav1.NewTime(incidenttest.Start)
	for _, c := range []struct {
		kind, status, reason string
		told                 bool
	}{{"ReplicaFailure", "True", "FailedCreate", true}, {"ReplicaFailure", "False", "FailedCreate", false}, {"ReplicaFailure", "True", "FailedDelete", false}, {"Other", "True", "FailedCreate", false}} {
		rs, d := incidenttest.ReplicaSet(2, 1, 1, false), &appsv1.Deployment{}
		rs.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetConditionType(c.kind), Status: corev1.ConditionStatus(c.status), Reason: c.reason, Message: "no", LastTransitionTime: at}}
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentConditionType(c.kind), Status: corev1.ConditionStatus(c.status), Reason: c.reason, Message: "no", LastTransitionTime: at}}
		for _, o := range []metav1.Object{rs, d} {
			m, ok := MakerOf(o)
			if !ok || m.failing.Equal(incidenttest.Start) != c.told || m.failing.IsZero() == c.told || (m.says == "no") != c.told {
				t.Errorf("%+v: %+v", c, m)
			}
		}
	}
}

// How many pods a Job wants now.
func TestWhatAJobWants(t *testing.T) {
	failed, terminating := batchv1.Failed, batchv1.TerminatingOrFailed
	for name, c := range map[string]struct {
		edit  func(*batchv1.Job)
		wants int // of four at a time, six in all
	}{
		"as many as at a time":                       {func(*batchv1.Job) {}, 4},
		"no more than are left":                      {func(j *batchv1.Job) { j.Status.Succeeded = 4 }, 2},
		"one, where nothing is said":                 {func(j *batchv1.Job) { j.Spec.Parallelism = nil }, 1},
		"those that end are replaced once they have": {func(j *batchv1.Job) { j.Spec.PodReplacementPolicy, j.Status.Terminating = &failed, new(int32(3)) }, 1},
		"or before":                              {func(j *batchv1.Job) { j.Spec.PodReplacementPolicy, j.Status.Terminating = &terminating, new(int32(3)) }, 4},
		"none end":                               {func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = &failed }, 4},
		"no policy":                              {func(j *batchv1.Job) { j.Status.Terminating = new(int32(3)) }, 4},
		"a work queue that has not begun to end": {func(j *batchv1.Job) { j.Spec.Completions = nil }, 4},
		"one that has": {func(j *batchv1.Job) {
			j.Spec.Completions, j.Status.Succeeded, j.Status.Active = nil, 1, 3
		}, 3},
		"a condition that is not so": {func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}}
		}, 4},
		"suspended":     {func(j *batchv1.Job) { j.Spec.Suspend = new(true) }, 0},
		"not suspended": {func(j *batchv1.Job) { j.Spec.Suspend = new(false) }, 4},
	} {
		j := incidenttest.Job(c.edit)
		if m, ok := MakerOf(j); !ok || m.Wants != c.wants {
			t.Errorf("%s: %+v, want %d", name, m, c.wants)
		}
	}
}

// Of several events the last is what is said, and the first since when.
func TestTheLastRefusalIsSaid(t *testing.T) {
	event := func(says string, first, last time.Duration) *corev1.Event {
		e := incidenttest.Refusing("Job", "train", last)
		e.FirstTimestamp, e.Message = metav1.NewTime(incidenttest.Start.Add(first)), says
		return e
	}
	normal := event("normal", 0, time.Hour)
	normal.Type = corev1.EventTypeNormal
	other := event("another reason", 0, time.Hour)
	other.Reason = "Scheduled"
	got := Makers{Jobs: oneJob(incidenttest.Job(func(*batchv1.Job) {})), Events: []*corev1.Event{event("b", 3*time.Minute, 5*time.Minute), normal, event("a", time.Minute, 2*time.Minute), event("c", 4*time.Minute, 5*time.Minute), event("a", 4*time.Minute, 5*time.Minute), other}}.Refusals(nil, nobody)
	if len(got) != 1 || got[0].Says != "c" || !got[0].Since.Equal(incidenttest.Start.Add(time.Minute)) {
		t.Errorf("%+v", got)
	}
}

// A message that tells of a later moment is not older; what is no message tells nothing.
func TestOlder(t *testing.T) {
	i := Incident{ID: "gpu-1", Newest: "5"}
	for newest, want := range map[string]bool{"4": false, "5": false, "6": true} {
		_, body, err := Incident{ID: "gpu-1", Newest: newest}.Message()
		if err != nil {
			t.Fatal(err)
		}
		if got := i.Older(body); got != want {
			t.Errorf("%s: %v", newest, got)
		}
	}
	if i.Older([]byte(`{"newest": "6"`)) {
		t.Error("half a message is taken for one")
	}
}
