package outside_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
)

// A pod set that does not tolerate its flavor waits for nobody: its template is edited, or the flavor gives
// it the toleration; nothing that a flavor gives already is taken away.
func TestPodSetsAreGivenTolerations(t *testing.T) {
	const look = "  kubectl -n a describe workloads.kueue.x-k8s.io wl\n"
	with := func(flavor, more string) func(*edittest.World) {
		return func(w *edittest.World) {
			workload(t, w, "couldn't assign flavors to pod set main: untolerated taint {team vision NoSchedule <nil>} in flavor gpus"+more)
			w.QueuedWorkloads[0].Object["spec"] = map[string]any{"podSets": []any{map[string]any{"name": "main"}}}
			add(t, &w.Queues.Flavors, flavor)
		}
	}
	const one, two = `{metadata: {name: gpus}, spec: {nodeTaints: [{key: team, value: vision, effect: NoSchedule}]}}`, `{metadata: {name: gpus}, spec: {nodeTaints: [{key: team, effect: NoExecute}], tolerations: [{key: zone}]}}`
	run(t, map[string]row{
		"its template": {outside.LetInByQueue, with(one, ""), `Manual for "", 0 min, by hand, low risk: have pod set main of deployment/w tolerate team=vision:NoSchedule, which flavor gpus has
until Kueue admits it
` + look + `  kubectl -n a edit deployment/w  # tolerations of pod set main: {"key":"team","value":"vision","effect":"NoSchedule"}
  kubectl patch resourceflavors.kueue.x-k8s.io gpus --type=merge -p '{"spec":{"tolerations":[{"key":"team","value":"vision","effect":"NoSchedule"}]}}'  # or this: of all that Kueue admits to that flavor
`},
		"its nodes have the taint": {outside.LetInByQueue, func(w *edittest.World) {
			with(one, "")(w)
			w.AddNode(sim.Node{Name: "n", Taints: []corev1.Taint{{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}})
		}, "Wait for \"\", 0 min, by hand, none risk: wait until its queue admits it\nuntil Kueue admits it\n" + look},
		"its nodes have another": {outside.LetInByQueue, func(w *edittest.World) {
			with(two, "")(w)
			w.AddNode(sim.Node{Name: "n", Taints: []corev1.Taint{{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}})
		}, `Manual for "", 0 min, by hand, low risk: have pod set main of deployment/w tolerate team:NoExecute, which flavor gpus has
until Kueue admits it
` + look + `  kubectl -n a edit deployment/w  # tolerations of pod set main: {"key":"team","operator":"Exists","effect":"NoExecute"}
  kubectl edit resourceflavors.kueue.x-k8s.io gpus  # or this, of all that Kueue admits to that flavor: spec.tolerations
`},
		"it may have another flavor later": {outside.LetInByQueue, with(one, ", insufficient unused quota for cpu in flavor b, 4 more needed"), "Wait for \"\", 0 min, by hand, none risk: wait until its queue admits it\nuntil Kueue admits it\n" + look + "RaiseQuota for \"\", 1 min, by hand, medium risk: raise the quota of its ClusterQueue\nuntil its ClusterQueue has the quota\n" + look + "  kubectl get clusterqueues.kueue.x-k8s.io\n  # then kubectl edit clusterqueue.kueue.x-k8s.io NAME: nominalQuota or borrowingLimit\n"},
		"a flavor that gives others": {outside.LetInByQueue, with(two, ""), `Manual for "", 0 min, by hand, low risk: have pod set main of deployment/w tolerate team:NoExecute, which flavor gpus has
until Kueue admits it
` + look + `  kubectl -n a edit deployment/w  # tolerations of pod set main: {"key":"team","operator":"Exists","effect":"NoExecute"}
  kubectl edit resourceflavors.kueue.x-k8s.io gpus  # or this, of all that Kueue admits to that flavor: spec.tolerations
`},
	})
}

// What names no queue is given one: the only one of its namespace, one of several, or one that is made.
func TestAQueueIsNamed(t *testing.T) {
	with := func(queues ...string) func(*edittest.World) {
		return func(w *edittest.World) {
			w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
			add(t, &w.QueuedWorkloads, `{metadata: {namespace: a, name: wl}, spec: {}}`)
			w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
			for _, name := range queues {
				add(t, &w.Queues.Local, `{metadata: {namespace: a, name: `+name+`}, spec: {clusterQueue: all}}`)
			}
		}
	}
	const head, list = `Manual for "QueueMisconfigured", 0 min, by hand, low risk: `, "  kubectl -n a get localqueues.kueue.x-k8s.io"
	edit := func(queue string) string {
		return "  kubectl -n a edit deployment/w  # label kueue.x-k8s.io/queue-name: " + queue + ", of it and of its pods\n"
	}
	run(t, map[string]row{
		"the only one":   {outside.MendQueue, with("team"), head + "name the queue that is to admit deployment/w: label kueue.x-k8s.io/queue-name=team\nuntil Kueue admits it\n" + list + "\n" + edit("team")},
		"one of several": {outside.MendQueue, with("team", "all"), head + "name the queue that is to admit deployment/w: label kueue.x-k8s.io/queue-name\nuntil Kueue admits it\n" + list + "\n" + edit("QUEUE")},
		"there is none":  {outside.MendQueue, with(), head + "make a LocalQueue in namespace a, and name it in deployment/w: label kueue.x-k8s.io/queue-name\nuntil Kueue admits it\n  kubectl get clusterqueues.kueue.x-k8s.io\n" + list + "  # one named default is for all who name none, from then on\n" + edit("QUEUE")},
	})
}
