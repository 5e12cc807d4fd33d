package queues

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/rcatest"
)

// stood is a condition that has stood for so long.
func stood(kind, status, reason, message string, ago time.Duration) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": rcatest.Noon.Add(-ago).UTC().Format(time.RFC3339)}
}

func check(name, state, message string) any {
	return map[string]any{"name": name, "state": state, "message": message}
}

// A check that says no takes the quota back: the Workload waits for what the check asks for,
// until its back-off is over, and then for Kueue, which has to look at it again.
func TestAChecksNoTakesTheQuota(t *testing.T) {
	const gave = "proven: its queue (Kueue) has not admitted it: it gave its quota back, for admission check prov is Retry: Max nodepool size reached"
	const rest = atGate + "\nWorkload/a/mine: QuotaReserved=False, Pending: "
	const failed = "The workload has failed admission checks"
	const told1 = "\nWorkload/a/mine: admission check prov is Retry: Max nodepool size reached"
	const over = "\nWorkload/a/mine: Requeued=True BackoffFinished: over"
	evicted := stood("Evicted", "True", "AdmissionCheck", "At least one admission check is false", time.Hour)
	requeued := func(ago time.Duration) map[string]any {
		return stood("Requeued", "True", "BackoffFinished", "over", ago)
	}
	for name, k := range map[string]struct {
		conditions []any
		active     any
		want       string
	}{
		"in its back-off":                  {[]any{stood("QuotaReserved", "False", "Pending", failed, time.Hour), evicted}, true, gave + rest + failed + told1},
		"Kueue is about to look":           {[]any{stood("QuotaReserved", "False", "Pending", failed, time.Hour), evicted, requeued(10*time.Minute - time.Second)}, true, gave + rest + failed + told1},
		"nobody has looked since":          {[]any{stood("QuotaReserved", "False", "Pending", failed, time.Hour), evicted, requeued(10 * time.Minute)}, true, "proven: its queue (Kueue) has not admitted it: Kueue has not tried it again since its back-off ended at 11:50 UTC; admission check prov is Retry: Max nodepool size reached" + rest + failed + told1 + over},
		"evicted, and never tried":         {[]any{stood("QuotaReserved", "False", "Pending", failed, 2*time.Hour), stood("Evicted", "True", "AdmissionCheck", "no", 2*time.Hour)}, true, "proven: its queue (Kueue) has not admitted it: Kueue has not tried it again since it gave its quota back at 10:00 UTC; admission check prov is Retry: Max nodepool size reached" + rest + failed + told1 + "\nWorkload/a/mine: Evicted=True AdmissionCheck: no"},
		"evicted, and it may be tried yet": {[]any{stood("QuotaReserved", "False", "Pending", failed, 2*time.Hour-time.Second), stood("Evicted", "True", "AdmissionCheck", "no", 2*time.Hour-time.Second)}, true, gave + rest + failed + told1},
		"evicted, and looked at since":     {[]any{stood("QuotaReserved", "False", "Pending", failed, time.Hour), stood("Evicted", "True", "AdmissionCheck", "no", 2*time.Hour)}, true, gave + rest + failed + told1},
		"it has looked since":              {[]any{stood("QuotaReserved", "False", "Pending", failed, time.Minute), evicted, requeued(time.Hour)}, true, gave + rest + failed + told1},
		"and said why not":                 {[]any{stood("QuotaReserved", "False", "Pending", "insufficient quota", time.Hour), evicted, requeued(time.Hour - time.Minute)}, true, gave + rest + "insufficient quota" + told1},
		"it is in its back-off still":      {[]any{stood("QuotaReserved", "False", "Pending", failed, time.Hour), evicted, stood("Requeued", "False", "AdmissionCheck", "", 30*time.Minute)}, true, gave + rest + failed + told1},
		"somebody has set it aside":        {[]any{stood("QuotaReserved", "False", "Pending", failed, time.Hour), evicted, requeued(time.Hour - time.Minute)}, false, gave + atGate + "\nWorkload/a/mine: spec.active is false" + told1},
		"evicted for another":              {[]any{stood("QuotaReserved", "False", "Pending", failed, time.Hour), stood("Evicted", "True", "Preempted", "", time.Hour)}, true, "proven: its queue (Kueue) has not admitted it: " + failed + rest + failed},
		"evicted long ago, with its quota": {[]any{stood("QuotaReserved", "True", "QuotaReserved", "", time.Minute), evicted}, true, "proven: its queue (Kueue) has not admitted it: it has its quota, and admission check prov is Retry: Max nodepool size reached" + atGate + "\nWorkload/a/mine: has no condition that says why" + told1 + "\nWorkload/a/mine: admission check budget is Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				gated(w)
				queued(w, map[string]any{"active": k.active}, map[string]any{"conditions": k.conditions,
					"admissionChecks": []any{check("fine", "Ready", "ok"), check("budget", "Pending", ""), check("prov", "Retry", "Max nodepool size reached")}})
				w.Unread["AdmissionCheck"] = "x"
			})
			if got := told(c.NotAdmitted()); got != k.want {
				t.Errorf("%s\nwant\n%s", got, k.want)
			}
		})
	}
}

// With quota and checks a Workload may still lack its place by topology: the newest word of
// Kueue's second pass tells, and none once it is admitted or a check is open.
func TestTheSecondPass(t *testing.T) {
	reserved := stood("QuotaReserved", "True", "QuotaReserved", "", time.Hour)
	for name, k := range map[string]struct {
		conditions []any
		state      string
		want       string
	}{
		"fails":           {[]any{reserved}, "Ready", "insufficient unused quota, 8 more needed"},
		"a check is open": {[]any{reserved}, "Pending", ""},
		"it is admitted":  {[]any{reserved, stood("Admitted", "True", "Admitted", "", 0)}, "Ready", ""},
		"no quota":        {[]any{stood("QuotaReserved", "False", "Pending", "", 0)}, "Ready", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				gated(w)
				queued(w, nil, map[string]any{"conditions": k.conditions, "admissionChecks": []any{check("prov", k.state, "")}})
				for ago, words := range map[time.Duration]string{time.Minute: "insufficient unused\n quota, 8 more needed", time.Hour: "no topology"} {
					w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Workload", Namespace: "a", Name: "mine"}, Reason: "SecondPassFailed", Message: words, LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}})
				}
				w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Workload", Namespace: "a", Name: "mine"}, Reason: "Pending", Message: "x", LastTimestamp: metav1.Time{Time: rcatest.Noon}})
			})
			w := c.Queued()
			if got := c.SecondPass(w); got != k.want {
				t.Errorf("%q, want %q", got, k.want)
			}
			if k.want == "" {
				return
			}
			if got, want := told(c.NotAdmitted()), "proven: its queue (Kueue) has not admitted it: it has its quota, its checks are Ready, and Kueue finds no place for it in a second pass: "+k.want+atGate+"\nWorkload/a/mine: has no condition that says why\nWorkload/a/mine: SecondPassFailed: "+k.want; got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
		})
	}
}
