package queues

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"
)

// What Kueue holds without a Workload is told so, after a while and where all were read. A pod that names
// its Workload has no other.
func TestHeldWithoutAWorkload(t *testing.T) {
	const held, none = "proven: its queue (Kueue) has not admitted it" + atGate, "likely: Kueue has made no Workload for it, so no queue has looked at it" + atGate
	const unread = "proven: its queue (Kueue) has not admitted it; Workloads were not read, so neither what it lacks is known, nor whether Kueue has made one for it" + atGate
	const missing, unowned = none + "\nPod/a/w: its Workload group-4 is not among those that were read", none + "\nPod/a/w: none of the Workloads that were read stands for it"
	group := func(w *rcatest.World) {
		gated(w)
		w.Wait.Labels[prebuilt], w.Wait.Labels[incident.GroupLabel] = "group-4", "group-4"
	}
	for name, tc := range map[string]struct {
		fill  func(*rcatest.World)
		young bool
		want  string
	}{
		"a pod by itself":    {gated, false, unowned},
		"it is new":          {gated, true, held},
		"they are not read":  {func(w *rcatest.World) { gated(w); w.Unread["Workload.kueue.x-k8s.io"] = "x" }, false, unread},
		"that of its group":  {group, false, missing},
		"another of its own": {func(w *rcatest.World) { group(w); queued(w, nil, nil) }, false, missing},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, tc.fill)
			if c.Incident.Since = rcatest.Noon.Add(-time.Hour); tc.young {
				c.Incident.Since = rcatest.Noon.Add(time.Second - time.Minute)
			}
			if got := told(c.NotAdmitted()); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
	for why, fill := range map[string]func(*rcatest.World){"Kueue does not hold it": func(*rcatest.World) {}, "Kueue waits for the rest of its group": func(w *rcatest.World) {
		group(w)
		w.Wait.Annotations = map[string]string{totalCount: "2"}
	}} {
		c := open(t, fill)
		c.Incident.Since = rcatest.Noon.Add(-time.Hour)
		if _, lacks := c.NoWorkload(); lacks {
			t.Error(why)
		}
	}
}

// Without Workloads to read, who suspended a Job is not known: it is told of the queue that its owner names.
func TestASuspendedJobWithoutWorkloadsToRead(t *testing.T) {
	c := open(t, func(w *rcatest.World) { w.Unread["Workload.kueue.x-k8s.io"] = "x" })
	c.Held = &incident.Refusal{Owner: incident.Ref{Kind: "Job", Namespace: "a", Name: "set-0"}, Wants: 1, Queue: "team", Named: &incident.Ref{Kind: "JobSet", Namespace: "a", Name: "set"}}
	const want = "likely: its queue (Kueue) has not admitted it; Workloads were not read, so neither what it lacks is known, nor whether Kueue has made one for it\nJob/a/set-0: suspended, and wants 1 pod\nJobSet/a/set: queue team"
	if got := told(c.NotAdmitted()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A StrictFIFO queue looks at nobody behind a Workload that it cannot admit: who that is is told, as long
// as Kueue has said nothing of the one behind.
func TestBehindTheHeadOfAQueue(t *testing.T) {
	const words = "insufficient unused quota for nvidia.com/gpu in flavor b300, 8 more needed"
	at := func(o *unstructured.Unstructured, ago time.Duration) {
		o.SetCreationTimestamp(metav1.Time{Time: rcatest.Noon.Add(-ago)})
	}
	waits := []any{condition("QuotaReserved", "False", "Pending", words)}
	for name, tc := range map[string]struct {
		edit func(w *rcatest.World, mine, head, queue *unstructured.Unstructured)
		want string
	}{
		"it is older": {nil, "Workload/a/head"},
		"the queue passes it": {func(_ *rcatest.World, _, _, q *unstructured.Unstructured) {
			set(q, "BestEffortFIFO", "spec", "queueingStrategy")
		}, ""},
		"Kueue has looked": {func(_ *rcatest.World, mine, _, _ *unstructured.Unstructured) {
			set(mine, waits, "status", "conditions")
		}, ""},
		"what it lacked is free": {func(_ *rcatest.World, mine, _, q *unstructured.Unstructured) {
			set(mine, waits, "status", "conditions")
			set(mine, []any{map[string]any{"name": "main", "count": int64(1)}}, "spec", "podSets")
			figures(q, "b300", "8", "0")
		}, "Workload/a/head"},
		"it is lacking still": {func(_ *rcatest.World, mine, _, q *unstructured.Unstructured) {
			set(mine, waits, "status", "conditions")
			set(mine, []any{map[string]any{"name": "main", "count": int64(1)}}, "spec", "podSets")
			figures(q, "b300", "8", "8")
		}, ""},
		"it was evicted since": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) {
			set(head, []any{waits[0], evicted("PodsReadyTimeout", time.Minute)}, "status", "conditions")
		}, ""},
		"its check was tried again since": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) {
			set(head, []any{waits[0], evicted("AdmissionCheck", time.Minute)}, "status", "conditions")
		}, ""},
		"it was evicted before": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) {
			set(head, []any{waits[0], evicted("PodsReadyTimeout", 90*time.Minute)}, "status", "conditions")
		}, "Workload/a/head"},
		"it was preempted since": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) {
			set(head, []any{waits[0], evicted("Preempted", time.Minute)}, "status", "conditions")
		}, "Workload/a/head"},
		"it is in its back-off": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) {
			set(head, []any{waits[0], condition("Requeued", "False", "PodsReadyTimeout", "")}, "status", "conditions")
		}, ""},
		"it is younger": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) { at(head, time.Minute) }, ""},
		"it is of lower priority": {func(_ *rcatest.World, mine, _, _ *unstructured.Unstructured) {
			set(mine, int64(10), "spec", "priority")
		}, ""},
		"younger, but of higher": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) {
			at(head, time.Minute)
			set(head, int64(10), "spec", "priority")
		}, "Workload/a/head"},
		"it is set aside": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) { set(head, false, "spec", "active") }, ""},
		"it is admitted": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) {
			set(head, []any{condition("QuotaReserved", "True", "QuotaReserved", "")}, "status", "conditions")
		}, ""},
		"in another queue": {func(_ *rcatest.World, _, head, _ *unstructured.Unstructured) { set(head, "other", "spec", "queueName") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var mine *unstructured.Unstructured
			c := open(t, func(w *rcatest.World) {
				gated(w)
				mine = queued(w, map[string]any{"queueName": "team"}, map[string]any{})
				head := object("a", "head", map[string]any{"spec": map[string]any{"queueName": "team"}, "status": map[string]any{"conditions": waits}})
				queue := object("", "gpus", map[string]any{"spec": map[string]any{"queueingStrategy": "StrictFIFO"}})
				at(mine, time.Hour)
				at(head, 2*time.Hour)
				w.QueuedWorkloads = append(w.QueuedWorkloads, head)
				w.Queues.Local = []*unstructured.Unstructured{object("a", "team", map[string]any{"spec": map[string]any{"clusterQueue": "gpus"}})}
				w.Queues.Cluster = []*unstructured.Unstructured{queue}
				if tc.edit != nil {
					tc.edit(w, mine, head, queue)
				}
			})
			got := ""
			if h := c.Ahead(mine); h != nil {
				got = h.Ref()
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			const says = "proven: its queue (Kueue) has not admitted it: Workload/a/head stands before it in ClusterQueue gpus, which is StrictFIFO and passes over nobody" + atGate +
				"\nWorkload/a/mine: has no condition that says why\nClusterQueue/gpus: spec.queueingStrategy is StrictFIFO\nWorkload/a/head: QuotaReserved=False, Pending: " + words
			full, wanted := told(c.NotAdmitted()), says
			if why, _ := Why(mine); why != "" {
				full, wanted = strings.Split(full, "\n")[0], strings.Split(says, "\n")[0]
			}
			if (full == wanted) != (tc.want != "") {
				t.Errorf("%s\nwant\n%s", full, wanted)
			}
		})
	}
}

func set(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
}
