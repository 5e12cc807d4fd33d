package outside_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/rcatest"
)

// gated has Kueue hold the pod, in a LocalQueue of that name.
func gated(w *edittest.World) {
	w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	w.Wait.Labels["kueue.x-k8s.io/queue-name"] = "team"
}

// workload adds the Workload that Kueue made for the pod, which waits for what Kueue says.
func workload(t *testing.T, w *edittest.World, message string) {
	t.Helper()
	add(t, &w.QueuedWorkloads, fmt.Sprintf(`{metadata: {namespace: a, name: wl}, spec: {queueName: team}, status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: %q}]}}`, message))
	w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
}

// A queue that admits nobody is made, or set up, where it is missing or closed; who makes a pod
// that does not exist yet is looked at in its place.
func TestQueuesAreMended(t *testing.T) {
	const label = "  kubectl -n a edit deployment/w  # the label or annotation that names its queue\n"
	run(t, map[string]row{
		"nothing is wrong": {outside.MendQueue, func(*edittest.World) {}, ""},
		"one is missing": {outside.MendQueue, func(w *edittest.World) { gated(w) }, `Manual for "QueueMisconfigured", 0 min, by hand, low risk: make queue team, or name one that exists
until queue team exists
  kubectl -n a get localqueues.kueue.x-k8s.io
  kubectl -n a get pod w -o jsonpath='{.metadata.labels}'
` + label},
		"one of all namespaces": {outside.MendQueue, func(w *edittest.World) {
			w.Wait.Spec.SchedulerName = "volcano"
			w.Wait.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": "team"}
		}, `Manual for "QueueMisconfigured", 0 min, by hand, low risk: make queue team, or name one that exists
until queue team exists
  kubectl get queues.scheduling.volcano.sh
  kubectl -n a get pod w -o jsonpath='{.metadata.labels}'
` + label},
		"one is stopped": {outside.MendQueue, func(w *edittest.World) {
			gated(w)
			add(t, &w.Queues.Local, `{metadata: {namespace: a, name: team}, spec: {clusterQueue: gpus, stopPolicy: Hold}}`)
		}, `Manual for "QueueMisconfigured", 0 min, by hand, low risk: open LocalQueue team again, if who stopped it agrees: its stopPolicy is Hold
until LocalQueue team admits workloads
  kubectl describe -n a localqueues.kueue.x-k8s.io team
  kubectl patch -n a localqueues.kueue.x-k8s.io team --type merge -p '{"spec":{"stopPolicy":"None"}}'
`},
		"by a scheduler's words": {outside.MendQueue, func(w *edittest.World) {
			edittest.RefusedBy("kai-scheduler", "queue qa does not exist")(w)
			w.Wait.Status.Conditions[0].Reason = "QueueDoesNotExist"
			w.Wait.Labels["kai.scheduler/queue"] = "qa"
			add(t, &w.Queues.KAI, `{metadata: {name: qa}, spec: {}}`)
		}, `Manual for "QueueMisconfigured", 0 min, by hand, low risk: set queue qa up or open it again (kai-scheduler decides by its own rules, which are not run here)
until queue qa admits workloads
  kubectl describe queues.scheduling.run.ai qa
  kubectl edit queues.scheduling.run.ai qa
`},
	})
	w := edittest.New()
	gated(w)
	k := w.Case(t, "Deployment")
	k.Unborn = true
	if got := outside.MendQueue(edit.New(k))[0].Commands[1]; got != "kubectl -n a get deployment/w -o jsonpath='{.metadata.labels}'" {
		t.Error(got)
	}
}

// Of quota what lacks decides: more of it in the queue that has it, less of it asked, or what an
// evicted one still holds given back.
func TestWhatGivesQuota(t *testing.T) {
	const look = "  kubectl -n a describe workloads.kueue.x-k8s.io wl\n"
	const wait = `Wait for "", 0 min, by hand, none risk: wait until its queue admits it
until Kueue admits it
` + look
	const raise = `RaiseQuota for "", 1 min, by hand, medium risk: raise the quota of ClusterQueue gpus
until its ClusterQueue has the quota
` + look + `  kubectl edit clusterqueues.kueue.x-k8s.io gpus  # nominalQuota or borrowingLimit
`
	queue := func(w *edittest.World) {
		add(t, &w.Queues.Local, `{metadata: {namespace: a, name: team}, spec: {clusterQueue: gpus}}`)
		add(t, &w.Queues.Cluster, `{metadata: {name: gpus}, spec: {}}`)
	}
	run(t, map[string]row{
		"of a queue that was read": {outside.LetInByQueue, func(w *edittest.World) { queue(w); workload(t, w, "insufficient unused quota") }, wait + raise},
		"never enough":             {outside.LetInByQueue, func(w *edittest.World) { queue(w); workload(t, w, "insufficient quota, request > maximum capacity") }, raise},
		"what the queue has not": {outside.LetInByQueue, func(w *edittest.World) {
			queue(w)
			workload(t, w, "resource nvidia.com/gpu unavailable in ClusterQueue")
		}, `Manual for "", 0 min, by hand, none risk: have its ClusterQueue cover what it asks, or ask without it
until its ClusterQueue covers what it asks
` + look + `  kubectl get clusterqueues.kueue.x-k8s.io -o yaml  # spec.resourceGroups[].coveredResources
`},
		"an evicted one keeps it": {outside.LetInByQueue, func(w *edittest.World) {
			queue(w)
			workload(t, w, "insufficient unused quota")
			add(t, &w.QueuedWorkloads, `{metadata: {namespace: b, name: old}, status: {admission: {clusterQueue: gpus, podSetAssignments: [{flavors: {nvidia.com/gpu: x}, resourceUsage: {nvidia.com/gpu: "1"}}]}, conditions: [{type: Evicted, status: "True", reason: Preempted, lastTransitionTime: "2020-01-01T00:00:00Z"}]}}`)
		}, `Manual for "", 1 min, by hand, low risk: have Kueue give back the quota of Workload/b/old, which it has evicted
until Kueue gives that quota back
  kubectl -n b get workloads.kueue.x-k8s.io old -o yaml  # Evicted=True, and status.admission is still there
  kubectl -n b patch workloads.kueue.x-k8s.io old --type merge -p '{"spec":{"active":false}}'  # active: true queues it again
` + wait},
		"more than Volcano's may hold": {outside.LetInByQueue, func(w *edittest.World) {
			w.Asking(rcatest.List("nvidia.com/gpu", "4"))
			w.Wait.Spec.SchedulerName = "volcano"
			w.Wait.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": "team"}
			add(t, &w.Queues.Volcano, `{metadata: {name: team}, spec: {capability: {nvidia.com/gpu: 2}}}`)
		}, `Manual for "QueueNotAdmitted", 0 min, by hand, medium risk: let Queue team hold 4 nvidia.com/gpu, ask for no more than 2 at once, or name another queue (volcano decides by its own rules, which are not run here)
  kubectl get queues.scheduling.volcano.sh -o yaml  # spec.capability
  kubectl edit queues.scheduling.volcano.sh team
`},
	})
}
