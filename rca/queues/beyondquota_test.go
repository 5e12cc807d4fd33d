package queues

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"
)

// A Workload that waits for no quota is told of by what it is: admitted and still held, given to
// another cluster, or set inactive, by Kueue itself or by who knows whom.
func TestWhatWaitsForNoQuota(t *testing.T) {
	at := func(kind, status, reason, message string, ago time.Duration) any {
		k := condition(kind, status, reason, message).(map[string]any)
		k["lastTransitionTime"] = rcatest.Noon.Add(-ago).UTC().Format(time.RFC3339)
		return k
	}
	reserved := at("QuotaReserved", "True", "QuotaReserved", "Quota reserved", time.Hour)
	check := func(controller, message string) (map[string]any, func(*rcatest.World)) {
		return map[string]any{"conditions": []any{reserved}, "admissionChecks": []any{map[string]any{"name": "far", "state": "Pending", "message": message}}}, func(w *rcatest.World) {
			w.Queues.Checks = []*unstructured.Unstructured{object("", "far", map[string]any{"spec": map[string]any{"controllerName": controller}})}
		}
	}
	const over = "The workload is deactivated due to exceeding the maximum number of re-queuing retries"
	far, multi := check(multiKueue, `The workload got reservation on "worker1"`)
	near, provision := check("kueue.x-k8s.io/provisioning-request", "waits")
	for name, tc := range map[string]struct {
		active bool
		status map[string]any
		fill   func(*rcatest.World)
		want   string
		gaveUp bool
	}{
		"admitted, and held still":   {true, map[string]any{"conditions": []any{reserved, at("Admitted", "True", "Admitted", "The workload is admitted", time.Hour)}}, nil, "Kueue admitted it at 11:00 UTC and has not let it begin: gate kueue.x-k8s.io/admission is still there", false},
		"admitted a moment ago":      {true, map[string]any{"conditions": []any{reserved, at("Admitted", "True", "Admitted", "The workload is admitted", 20*time.Second)}}, nil, "Kueue has admitted it a moment ago; gate kueue.x-k8s.io/admission is still there", false},
		"admitted once, and evicted": {true, map[string]any{"conditions": []any{at("Admitted", "True", "Admitted", "admitted", time.Hour), at("Evicted", "True", "Preempted", "preempted", time.Minute)}}, nil, "its queue (Kueue) has not admitted it", false},
		"given to another cluster":   {true, far, multi, `Kueue gives it to another cluster (MultiKueue), and its pods do not begin in this one: admission check far is Pending: The workload got reservation on "worker1"`, false},
		"another check":              {true, near, provision, "its queue (Kueue) has not admitted it: it has its quota, and admission check far is Pending: waits", false},
		"Kueue gave up":              {false, map[string]any{"conditions": []any{at("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", over, time.Hour)}}, nil, "its queue (Kueue) has not admitted it: its Workload is not active: " + over, true},
		"somebody set it inactive":   {false, map[string]any{"conditions": []any{at("Evicted", "True", "Deactivated", "The workload is deactivated", time.Hour)}}, nil, "its queue (Kueue) has not admitted it: its Workload is not active", false},
		"it gave up, and was asked":  {true, map[string]any{"conditions": []any{at("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", over, time.Hour)}}, nil, "its queue (Kueue) has not admitted it", false},
	} {
		t.Run(name, func(t *testing.T) {
			var mine *unstructured.Unstructured
			c := open(t, func(w *rcatest.World) {
				gated(w)
				mine = queued(w, map[string]any{"active": tc.active}, tc.status)
				if tc.fill != nil {
					tc.fill(w)
				}
			})
			if got, _, _ := strings.Cut(told(c.NotAdmitted()), "\n"); got != "proven: "+tc.want || GaveUp(mine) != tc.gaveUp {
				t.Errorf("%s, gave up: %v\nwant\n%s", got, GaveUp(mine), tc.want)
			}
		})
	}
}

// What is of a kind that is not read is told of by its Workload.
func TestHeldOfAKindThatIsNotRead(t *testing.T) {
	c := open(t, func(w *rcatest.World) { queued(w, map[string]any{"queueName": "team"}, nil) })
	c.Held = &incident.Refusal{Owner: incident.Ref{Kind: "PyTorchJob.kubeflow.org", Namespace: "a", Name: "train"}, Wants: 2, Queue: "team"}
	if got, want := told(c.NotAdmitted()), "proven: its queue (Kueue) has not admitted it\nWorkload/a/mine: stands for pytorchjob.kubeflow.org/train, of which no pod exists; in queue team\nWorkload/a/mine: has no condition that says why"; !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A scheduler that speaks of others and not of this pod is told, but for one that has had no
// time, and where anything was said of it.
func TestSilence(t *testing.T) {
	other := func(w *rcatest.World) {
		w.Wait.Spec.SchedulerName = "bridge"
		o := w.Wait.DeepCopy()
		o.Name, o.UID, o.Status.Conditions = "o", "o", []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
		w.Pods = append(w.Pods, o)
	}
	said := func(by string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			other(w)
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: "w"}, Reason: "Queued", ReportingController: by})
		}
	}
	const silent = "likely: bridge, which places other pods, has said nothing of it in 1 h"
	for name, tc := range map[string]struct {
		fill  func(*rcatest.World)
		since time.Duration
		want  string
	}{
		"it places others":        {other, time.Hour, silent},
		"it has had no time":      {other, 30 * time.Second, ""},
		"it has said something":   {said("bridge"), time.Hour, ""},
		"another has":             {said("autoscaler"), time.Hour, silent},
		"nobody has seen it":      {func(w *rcatest.World) { w.Wait.Spec.SchedulerName = "bridge" }, time.Hour, ""},
		"the default scheduler":   {func(w *rcatest.World) { other(w); w.Wait.Spec.SchedulerName = "" }, time.Hour, ""},
		"gates keep it from all":  {func(w *rcatest.World) { other(w); gated(w) }, time.Hour, ""},
		"it has a condition":      {func(w *rcatest.World) { other(w); refused(w, "bridge", "Unschedulable", "no") }, time.Hour, ""},
		"the kubelet has refused": {func(w *rcatest.World) { other(w); w.Wait.Status.Phase = corev1.PodFailed }, time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, tc.fill)
			c.Incident.Since = rcatest.Noon.Add(-tc.since)
			if got, _, _ := strings.Cut(told(c.Untaken()), "\n"); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
