package outside_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/rcatest"
)

// come is a NodeClaim of NodePool gpu whose machine is there, with the startup taint that the pool
// gives, and how it registered.
func come(t *testing.T, w *edittest.World, registered, reason string, on ...corev1.Taint) {
	t.Helper()
	at := rcatest.Noon.Add(-time.Hour).Format(time.RFC3339)
	add(t, &w.NodePools, `{metadata: {name: gpu}, spec: {template: {spec: {nodeClassRef: {kind: EC2NodeClass, name: own}, startupTaints: [{key: team/wait, effect: NoSchedule}]}}}}`)
	add(t, &w.NodeClaims, fmt.Sprintf(`{metadata: {name: gpu-abcde, labels: {karpenter.sh/nodepool: gpu}, creationTimestamp: %q}, spec: {resources: {requests: {nvidia.com/gpu: 1}}, startupTaints: [{key: team/wait, effect: NoSchedule}]}, status: {nodeName: new,
  conditions: [{type: Launched, status: "True"}, {type: Registered, status: %q, reason: %q, lastTransitionTime: %q}, {type: Initialized, status: Unknown, reason: StartupTaintsExist, lastTransitionTime: %q}]}}`, at, registered, reason, at, at))
	w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: corev1.NodeSpec{Taints: on}})
}

// A node that came in a way in which it cannot be used is opened by who was to, or joins as
// Karpenter wants it; no more is said than is seen.
func TestNodesThatCameAndCannotBeUsed(t *testing.T) {
	run(t, map[string]row{
		"a startup taint stands": {outside.LookAtPromise, func(w *edittest.World) {
			come(t, w, "True", "Registered", corev1.Taint{Key: "team/wait", Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule})
		}, `Manual for "ScaleUpStuck", 1 min, by hand, low risk: take taint team/wait off new, once what it waits for runs there: who was to do it has not (more keeps the pod from new)
until new has lost taint team/wait
  kubectl describe nodeclaim gpu-abcde
  kubectl get pods -A -o wide --field-selector spec.nodeName=new
  kubectl taint nodes new team/wait:NoSchedule-  # what takes it off has not, or does not run
  kubectl edit nodepool gpu  # spec.template.spec.startupTaints: without it, if nobody takes it off; Karpenter then replaces its machines one by one (drift)
`},
		"several nodes have it": {outside.LookAtPromise, func(w *edittest.World) { come(t, w, "Unknown", "MultipleNodesFound") },
			`Manual for "ScaleUpStuck", 0 min, by hand, low risk: leave one node of the machine of NodeClaim gpu-abcde: by their providerID several have it; or have Karpenter make another machine (the node is not there yet)
  kubectl get nodes -o custom-columns=NAME:.metadata.name,MACHINE:.spec.providerID,SINCE:.metadata.creationTimestamp  # those of one machine: delete who is not its kubelet's own
  kubectl delete nodeclaim gpu-abcde  # or this: Karpenter makes another while the pod waits; who runs on its machine stops
`},
		"it joined without Karpenter's taint": {outside.LookAtPromise, func(w *edittest.World) { come(t, w, "False", "UnregisteredTaintNotFound") },
			`Manual for "ScaleUpStuck", 0 min, by hand, low risk: have kubelets of NodePool gpu register with taint karpenter.sh/unregistered:NoExecute, by the image or user data of EC2NodeClass own (the node is not there yet)
  kubectl describe nodeclaim gpu-abcde
  kubectl edit ec2nodeclass own  # its image and user data: with a custom one, kubelet's --register-with-taints is yours to give
  kubectl delete nodeclaim gpu-abcde  # Karpenter makes another while the pod waits; who runs on its machine stops
`},
	})
}

// Groups are grown by hand with the command of their cloud, and a machine that never joined is
// asked after there.
func TestGroupsByHand(t *testing.T) {
	const joins = "cloudProviderTarget: 1, maxSize: 1, nodeCounts: {registered: {total: 0}, longUnregistered: 1}"
	on := func(provider string, fill func(*edittest.World)) func(*edittest.World) {
		return func(w *edittest.World) {
			fill(w)
			w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: provider + "://x/y"}})
		}
	}
	zero := func(w *edittest.World) {
		autoscaler("NotTriggerScaleUp", down+"1 node(s) didn't match Pod's node affinity/selector", group("a-big-1", "cloudProviderTarget: 0, maxSize: 2", ""))(w)
		w.Wait.Spec.NodeSelector = map[string]string{"agentpool": "big"}
	}
	const byLabel = `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: scale node group a-big-1 to one machine by hand: the cluster autoscaler then knows label agentpool of its nodes (the node is not there yet)
`
	const rest = `  kubectl -n a get pod w -w
  # to have it grow from zero by itself: select by a label of your own, which the pool's template has too
`
	stuck := autoscaler("NotTriggerScaleUp", down+"1 max node group size reached", group("a-big-1", joins, ""))
	const why = `ScaleNodePool for "ScaleUpStuck", 0 min, by hand, none risk: see at the cloud why node group a-big-1 has 0 of the 1 machines that were asked for (the node is not there yet)
  kubectl -n kube-system get events --field-selector involvedObject.name=cluster-autoscaler-status
`
	run(t, map[string]row{
		"on AWS":          {outside.GrowPool, on("aws", zero), byLabel + "  aws autoscaling set-desired-capacity --auto-scaling-group-name a-big-1 --desired-capacity 1\n" + rest},
		"on GCE":          {outside.GrowPool, on("gce", zero), byLabel + "  gcloud container clusters resize CLUSTER --node-pool big --num-nodes 1\n" + rest},
		"on Azure":        {outside.GrowPool, on("azure", zero), byLabel + "  az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name big --update-cluster-autoscaler --min-count 1 --max-count 2\n" + rest},
		"elsewhere":       {outside.GrowPool, zero, byLabel + "  # scale a-big-1 to 1 with the cloud's own command\n" + rest},
		"asked of AWS":    {outside.LookAtPromise, on("aws", stuck), why + "  aws autoscaling describe-scaling-activities --auto-scaling-group-name a-big-1 --max-items 5\n"},
		"asked of GCE":    {outside.LookAtPromise, on("gce", stuck), why + "  gcloud compute instance-groups managed list-errors a-big-1\n"},
		"asked of Azure":  {outside.LookAtPromise, on("azure", stuck), why + "  az vmss list-instances --resource-group NODE-RESOURCE-GROUP --name a-big-1 --expand instanceView -o table\n  az monitor activity-log list --resource-group NODE-RESOURCE-GROUP --status Failed --offset 6h -o table  # quota, allocation\n"},
		"asked elsewhere": {outside.LookAtPromise, stuck, why + "  # then what the cloud says of the machines of a-big-1: were they refused, or do they run and not join\n"},
	})
}

// An autoscaler that stands still is set going by what keeps it from that: nodes that are not ready
// to it, or those that it takes for ones with GPUs and that offer none by a name that it knows.
func TestTheAutoscalerIsSetGoing(t *testing.T) {
	halted := func(edits ...func(*corev1.Node)) func(*edittest.World) {
		return func(w *edittest.World) {
			groups(w, "")
			w.ConfigMaps[0].Data["status"] = "autoscalerStatus: Running\nclusterWide: {health: {status: Unhealthy, nodeCounts: {registered: {total: 9, unready: {total: 6}}}}}\n"
			w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
			for _, edit := range edits {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare", Labels: map[string]string{"accelerator": "nvidia"}}}
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: w.Wait.CreationTimestamp}}
				edit(n)
				w.Nodes = append(w.Nodes, n)
			}
		}
	}
	const work = `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: have the cluster autoscaler work again: `
	const look = "  kubectl -n kube-system get deployment -l app.kubernetes.io/name=cluster-autoscaler -o yaml | grep -- -unready\n"
	const bare = work + "it is kept from that by 1 node, as bare, labelled as having GPUs and without nvidia.com/gpu (the node is not there yet)\n" + look
	run(t, map[string]row{
		"nodes are not ready": {outside.GrowPool, halted(), work + "mend the nodes that are not ready to it, or raise --ok-total-unready-count (the node is not there yet)\n" + look},
		"one offers none": {outside.GrowPool, halted(func(*corev1.Node) {}), bare +
			"  kubectl get daemonsets -A | grep -i device-plugin  # one has to run on bare, or the label of its GPUs be taken off\n"},
		"one offers instances": {outside.GrowPool, halted(func(n *corev1.Node) { n.Status.Allocatable = rcatest.List("nvidia.com/mig-1g.5gb", "7") }), bare +
			"  # MIG instances and shares count for nothing there: --ok-total-unready-count=1 or more lets them be\n"},
	})
}
