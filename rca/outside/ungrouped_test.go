package outside_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"
)

// A Job of Volcano without a PodGroup needs its controllers, or what they say mended; a new one nothing.
func TestWhatAJobWithoutAGroupNeeds(t *testing.T) {
	controllers := func(replicas int32) func(*edittest.World) {
		return func(w *edittest.World) {
			d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
			d.Namespace, d.Name = "volcano-system", "volcano-controllers"
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "volcanosh/vc-controller-manager:v1"}}
			w.Deployments = append(w.Deployments, d)
		}
	}
	const back = "by hand, none risk: bring back Volcano's controllers (volcano-system/volcano-controllers)"
	for name, tc := range map[string]struct {
		fill  func(*edittest.World)
		young bool
		want  string
		scale bool
	}{
		"nothing is known": {func(*edittest.World) {}, false, "by hand, none risk: see why Volcano's controllers have made no PodGroup for deployment/w", false},
		"they are down":    {controllers(1), false, back, false},
		"they are at zero": {controllers(0), false, back, true},
		"they said why": {func(w *edittest.World) {
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Namespace: "a", Name: "w"}, Type: corev1.EventTypeWarning, Reason: "PVCError", Message: "no claim"})
		}, false, "by hand, none risk: mend what Volcano's controllers say of deployment/w: they try again by themselves", false},
		"it is new": {func(*edittest.World) {}, true, "by hand, none risk: wait until Volcano has made its PodGroup", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			tc.fill(w)
			c := edit.New(w.Case(t, "Deployment"))
			c.Queue.Held = &incident.Refusal{Owner: incident.Ref{Kind: "Job.batch.volcano.sh", Namespace: "a", Name: "w"}, Queue: "default", Ungrouped: true}
			if c.Queue.Incident.Since = rcatest.Noon.Add(-time.Hour); tc.young {
				c.Queue.Incident.Since = rcatest.Noon
			}
			got := outside.LetInByQueue(c)
			if told := edittest.ToldAll(got); told != tc.want || got[0].Until != "its PodGroup exists" {
				t.Errorf("%s until %s, want %s", told, got[0].Until, tc.want)
			}
			scales := len(got[0].Commands) > 1 && got[0].Commands[1] == "kubectl -n volcano-system scale deployment/volcano-controllers --replicas=1"
			if scales != tc.scale {
				t.Errorf("%q", got[0].Commands)
			}
		})
	}
}

// Who stands behind the head of a queue is let pass it, or waits for it; what has no Workload needs Kueue.
func TestWhoIsBehindAHead(t *testing.T) {
	w := edittest.New()
	add(t, &w.QueuedWorkloads, `{metadata: {namespace: a, name: head, creationTimestamp: "2026-01-01T00:00:00Z"}, spec: {queueName: team}, status: {conditions: [{type: QuotaReserved, status: "False", message: insufficient}]}}`)
	add(t, &w.QueuedWorkloads, `{metadata: {namespace: a, name: wl, creationTimestamp: "2026-01-01T01:00:00Z"}, spec: {queueName: team}}`)
	add(t, &w.Queues.Local, `{metadata: {namespace: a, name: team}, spec: {clusterQueue: gpus}}`)
	add(t, &w.Queues.Cluster, `{metadata: {name: gpus}, spec: {queueingStrategy: StrictFIFO}}`)
	w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
	const want = "by hand, medium risk: let ClusterQueue gpus take what fits behind Workload/a/head (queueingStrategy BestEffortFIFO), or set that one aside; by hand, none risk: wait until Workload/a/head is admitted"
	if got := edittest.ToldAll(outside.LetInByQueue(edit.New(w.Case(t, "Deployment")))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w = edittest.New()
	w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	c := edit.New(w.Case(t, "Deployment"))
	c.Queue.Incident.Since = rcatest.Noon.Add(-time.Hour)
	if got, want := edittest.ToldAll(outside.LetInByQueue(c)), "by hand, none risk: see why Kueue has made no Workload for deployment/w"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
