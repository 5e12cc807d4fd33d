package queues

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"
)

// What is suspended though Kueue has admitted its owner waits for nobody's quota.
func TestBehindAnAdmittedOwner(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "ray.io/v1", Kind: "RayJob", Name: "ppo", UID: "o", Controller: new(true)}
	const says = "likely: Kueue has admitted rayjob.ray.io/ppo, and job/ppo-1, which is made for that, is still suspended: Kueue takes it for work of its own\nJob/a/ppo-1: suspended, and wants 1 pod\n"
	const admitted = "Workload/a/mine: Admitted=True Admitted: The workload is admitted"
	for name, tc := range map[string]struct {
		job   *batchv1.Job
		since time.Duration
		none  bool
		want  string
	}{
		"its own":           {job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner}}}, since: time.Hour, want: says + "Job/a/ppo-1: owned by rayjob.ray.io/ppo\nJob/a/ppo-1: no label kueue.x-k8s.io/queue-name\n" + admitted},
		"of what that owns": {job: &batchv1.Job{}, since: time.Hour, want: says + "Job/a/ppo-1: no label kueue.x-k8s.io/queue-name\n" + admitted},
		"it is not read":    {since: time.Hour, want: says + admitted},
		"a moment ago":      {since: 2 * time.Second, want: "proven: Kueue has admitted it a moment ago; it is still suspended\n" + admitted},
		"not read":          {none: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				if tc.job != nil {
					tc.job.Namespace, tc.job.Name = "a", "ppo-1"
					w.Jobs = append(w.Jobs, tc.job)
				}
				if tc.none {
					return
				}
				k := condition("Admitted", "True", "Admitted", "The workload is admitted").(map[string]any)
				k["lastTransitionTime"] = rcatest.Noon.Add(-tc.since).Format(time.RFC3339)
				queued(w, map[string]any{"queueName": "gone"}, map[string]any{"conditions": []any{k}}).SetOwnerReferences([]metav1.OwnerReference{owner})
			})
			c.Held = &incident.Refusal{Owner: incident.Ref{Kind: "Job", Namespace: "a", Name: "ppo-1"}, Wants: 1, Held: true, Behind: &owner}
			if got := told(c.NotAdmitted()); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
			if q := c.Broken(); q != nil {
				t.Errorf("%+v", q)
			}
		})
	}
}
