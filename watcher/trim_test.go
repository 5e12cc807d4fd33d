package watcher

import (
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// Of a Job's labels the queue that it waits in is kept, and no other.
func TestAJobKeepsItsQueue(t *testing.T) {
	for name, tc := range map[string]struct{ has, want map[string]string }{
		"a queue": {map[string]string{incident.QueueLabel: "team", "app": "x"}, map[string]string{incident.QueueLabel: "team"}},
		"none":    {map[string]string{"app": "x"}, nil},
	} {
		kept, err := trim(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train", UID: "u", Labels: tc.has}})
		j, is := kept.(*batchv1.Job)
		if err != nil || !is || !maps.Equal(j.Labels, tc.want) || j.Name != "train" || j.UID != "u" {
			t.Errorf("%s: %+v, %v", name, kept, err)
		}
	}
}

// What is kept of a pod has it wait as the whole does, with what its kubelet has said and what it has not: one that runs, or is
// begun, among conditions that say that nothing is.
func TestWhatIsKeptOfAPodHasItWaitAlike(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	running := []corev1.ContainerStatus{{Name: "side"}, {Name: "main", Image: "x", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}
	creating := []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		says   bool // an Event of its kubelet
		want   string
	}{
		"it runs":              {corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &at, ContainerStatuses: running}, true, ""},
		"it ran before a boot": {corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &at, ContainerStatuses: creating}, true, incident.FailedPrepare},
		"it is begun":          {corev1.PodStatus{Phase: corev1.PodPending, StartTime: &at, ContainerStatuses: creating}, false, ""},
		"nobody begins it":     {corev1.PodStatus{Phase: corev1.PodPending}, false, incident.Untaken},
		"its devices fail":     {corev1.PodStatus{Phase: corev1.PodPending, StartTime: &at, ContainerStatuses: creating}, true, incident.FailedPrepare},
	} {
		p := incidenttest.StartingPod("train")
		c.status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, LastTransitionTime: at}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at}}
		p.Status = c.status
		var events []*corev1.Event
		if c.says {
			e := incidenttest.UnpreparedEvent(p)
			e.LastTimestamp, e.FirstTimestamp, e.EventTime = metav1.NewTime(at.Add(time.Minute)), at, metav1.MicroTime{}
			events = append(events, e)
		}
		kept, err := trim(p.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range []*corev1.Pod{p, kept.(*corev1.Pod)} {
			reason, _, waits := incident.Waiting(incident.WithKubelet([]*corev1.Pod{of}, events, at.Add(time.Hour))[0])
			if waits != (c.want != "") || reason != c.want {
				t.Errorf("%s: waits %t for %q, want %q", name, waits, reason, c.want)
			}
		}
	}
}
