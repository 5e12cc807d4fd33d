package outside_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/rcatest"
)

// A subnet or a reservation without room is named as the cloud names it, with the class to change and with
// others that there are.
func TestPlacesWithoutRoom(t *testing.T) {
	refusedIn := func(words, class string) func(*edittest.World) {
		return func(w *edittest.World) {
			add(t, &w.NodePools, fmt.Sprintf(classed, "EC2NodeClass"))
			if class != "" {
				add(t, &w.NodeClasses.AWS, `{metadata: {name: c}, status: {`+class+`}}`)
			}
			claimRefused(w, words)
		}
	}
	const subnets = "InsufficientFreeAddressesInSubnet: There are not enough free addresses in subnet 'subnet-0a'"
	const reserved = "ReservationCapacityExceeded: The requested reservation cr-0a does not have capacity"
	const scale = `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: `
	run(t, map[string]row{
		"a subnet, and no other": {outside.RefusedByCloud, refusedIn(subnets, "subnets: [{id: subnet-0a}]"), scale + `give EC2NodeClass c, by which NodePool gpu makes its machines, a subnet with free addresses: subnet-0a has none left (only the cloud knows what it has)
  aws ec2 describe-subnets --subnet-ids subnet-0a --query 'Subnets[].[SubnetId,AvailabilityZone,AvailableIpAddressCount]' --output table
  kubectl edit ec2nodeclass c  # spec.subnetSelectorTerms: one more term, as {id: SUBNET}
`},
		"a subnet of two": {outside.RefusedByCloud, refusedIn(subnets, "subnets: [{id: subnet-0a}, {id: subnet-0b}]"), scale + `give EC2NodeClass c, by which NodePool gpu makes its machines, a subnet with free addresses: subnet-0a has none left (only the cloud knows what it has)
  aws ec2 describe-subnets --subnet-ids subnet-0a subnet-0b --query 'Subnets[].[SubnetId,AvailabilityZone,AvailableIpAddressCount]' --output table
  kubectl edit ec2nodeclass c  # spec.subnetSelectorTerms: one more term, as {id: subnet-0b}
`},
		"a reservation of two": {first(outside.RefusedByCloud), refusedIn(reserved, "capacityReservations: [{id: cr-0a}, {id: cr-0b}]"), scale + `have a reservation with room for NodePool gpu: cr-0a has none left; have a NodePool and EC2NodeClass of their own for cr-0b, which c selects too (only the cloud knows what it has)
  aws ec2 describe-capacity-reservations --capacity-reservation-ids cr-0a cr-0b --query 'CapacityReservations[].[CapacityReservationId,State,AvailableInstanceCount]' --output table
  kubectl get ec2nodeclass c -o yaml  # a second one like it, with spec.capacityReservationSelectorTerms: [{id: cr-0b}]
  kubectl get nodepool gpu -o yaml  # a second one like it, whose nodeClassRef names that class
  # in ec2nodeclass c itself that term would do as well, but Karpenter then replaces machines that are in another reservation (drift)
`},
		"the only reservation": {first(outside.RefusedByCloud), refusedIn(reserved, "capacityReservations: [{id: cr-0a}]"), scale + `have a reservation with room for NodePool gpu: cr-0a has none left, and EC2NodeClass c selects no other (only the cloud knows what it has)
  aws ec2 describe-capacity-reservations --capacity-reservation-ids cr-0a --query 'CapacityReservations[].[CapacityReservationId,State,AvailableInstanceCount]' --output table
  kubectl edit ec2nodeclass c  # spec.capacityReservationSelectorTerms: one more term
`},
	})
}

// A taint that fresh nodes lose is for the cluster autoscaler to leave out, and no matter of the pod's.
func TestTaintsOfTheStart(t *testing.T) {
	lost := autoscaler("NotTriggerScaleUp", down+"1 node(s) had untolerated taint {acme.io/not-ready: true}", group("a-big-1", "cloudProviderTarget: 0, maxSize: 2", ""))
	const title = `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: have the cluster autoscaler leave taint acme.io/not-ready, which fresh nodes lose, out of account: --startup-taint=acme.io/not-ready (the node is not there yet)
`
	const rest = `  # where a cloud runs it: name the taint startup-taint.cluster-autoscaler.kubernetes.io/NAME, which it leaves out by itself
  # scale a-big-1 to 1 with the cloud's own command, by hand meanwhile
  kubectl -n a get pod w -w
`
	run(t, map[string]row{
		"a cloud runs it": {outside.GrowPool, lost, title + "  kubectl get deployments -A | grep cluster-autoscaler  # then edit it: args: --startup-taint=acme.io/not-ready\n" + rest},
		"it runs here": {outside.GrowPool, func(w *edittest.World) {
			lost(w)
			add(t, &w.Deployments, "{metadata: {namespace: ops, name: cluster-autoscaler}}")
		}, title + "  kubectl -n ops edit deployment cluster-autoscaler  # args: --startup-taint=acme.io/not-ready\n" + rest},
	})
}

// While a group's machine is waited for that does not come, one at zero that nobody has tried is grown by hand.
func TestUntriedGroups(t *testing.T) {
	const joins = "cloudProviderTarget: 1, maxSize: 1, nodeCounts: {registered: {total: 0}, longUnregistered: 1}"
	stuck := func(others string) func(*edittest.World) {
		return autoscaler("NotTriggerScaleUp", down+"1 max node group size reached", group("a-big-1", joins, "")+others)
	}
	const hand = `ScaleNodePool for "ScaleUpStuck", 0 min, by hand, low risk: scale node group a-new-1 to one machine by hand, if the pod fits its machines: while another group's is waited for, the autoscaler grows no more (the node is not there yet)
  # scale a-new-1 to 1 with the cloud's own command
  kubectl -n a get pod w -w
`
	run(t, map[string]row{
		"one at zero":     {first(outside.LookAtPromise), stuck(group("a-new-1", "cloudProviderTarget: 0, maxSize: 2", "")), hand},
		"one that failed": {func(c *edit.Workload) []edit.Change { return outside.LookAtPromise(c)[1:] }, stuck(group("a-new-1", "cloudProviderTarget: 0, maxSize: 2", "  scaleUp: {status: Backoff}\n")), ""},
	})
}

// Of a group at zero nobody knows which devices a driver would publish there: it is shown a node. GKE's pool is
// told by how another's group is called.
func TestDevicesOfAGroupAtZero(t *testing.T) {
	at := func(provider string) func(*edittest.World) {
		return func(w *edittest.World) {
			autoscaler("NotTriggerScaleUp", down+"1 cannot allocate all claims, 1 node(s) didn't match Pod's node affinity/selector", group("gke-prod-gpu-l4-5e0c-grp", "cloudProviderTarget: 0, maxSize: 2", "")+
				group("gke-prod-cpu-7f21-grp", "cloudProviderTarget: 1, maxSize: 2, nodeCounts: {registered: {total: 1, ready: 1}}", ""))(w)
			add(t, &w.Nodes, "{metadata: {name: n1, labels: {cloud.google.com/gke-nodepool: cpu}}, spec: {providerID: '"+provider+"://x'}}")
			w.Wait.Spec.NodeSelector = map[string]string{"acme.io/gpu": "true"}
		}
	}
	const title = `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: scale node group gke-prod-gpu-l4-5e0c-grp to one machine by hand: the cluster autoscaler then knows the devices that its nodes publish (the node is not there yet)
`
	run(t, map[string]row{
		"on GKE": {outside.GrowPool, at("gce"), title + `  gcloud container clusters resize CLUSTER --node-pool gpu-l4 --num-nodes 1
  kubectl -n a get pod w -w
  # to have it grow from zero by itself: make the pool with label cloud.google.com/gke-nvidia-gpu-dra-driver=true, by which GKE knows the devices of nodes to come
`},
		"elsewhere": {outside.GrowPool, at("x"), title + `  # scale gke-prod-gpu-l4-5e0c-grp to 1 with the cloud's own command
  kubectl -n a get pod w -w
  # to keep it so: a smallest size of 1
`},
	})
}

// Kueue names one resource at a time that a ClusterQueue does not cover: all of them are, with a quota in each
// flavor of the group.
func TestQueuesThatDoNotCoverAll(t *testing.T) {
	run(t, map[string]row{"two, in two flavors": {outside.LetInByQueue, func(w *edittest.World) {
		add(t, &w.Queues.Local, `{metadata: {namespace: a, name: team}, spec: {clusterQueue: gpus}}`)
		add(t, &w.Queues.Cluster, `{metadata: {name: gpus}, spec: {resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: x, resources: [{name: nvidia.com/gpu, nominalQuota: "8"}]}, {name: z, resources: []}]}]}}`)
		workload(t, w, "couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue")
		w.QueuedWorkloads[0].Object["spec"].(map[string]any)["podSets"] = []any{map[string]any{"name": "main", "count": int64(2), "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}}}}}}}}
	}, `Manual for "", 0 min, by hand, low risk: have ClusterQueue gpus cover cpu, memory, with a quota in flavor x, z: 8 cpu, 16Gi memory is asked; or ask without it
until its ClusterQueue covers what it asks
  kubectl -n a describe workloads.kueue.x-k8s.io wl
  kubectl patch clusterqueues.kueue.x-k8s.io gpus --type json -p '[{"op":"add","path":"/spec/resourceGroups/0/coveredResources/-","value":"cpu"},{"op":"add","path":"/spec/resourceGroups/0/flavors/0/resources/-","value":{"name":"cpu","nominalQuota":"8"}},{"op":"add","path":"/spec/resourceGroups/0/flavors/1/resources/-","value":{"name":"cpu","nominalQuota":"8"}},{"op":"add","path":"/spec/resourceGroups/0/coveredResources/-","value":"memory"},{"op":"add","path":"/spec/resourceGroups/0/flavors/0/resources/-","value":{"name":"memory","nominalQuota":"16Gi"}},{"op":"add","path":"/spec/resourceGroups/0/flavors/1/resources/-","value":{"name":"memory","nominalQuota":"16Gi"}}]'  # the quota of this one alone: give what the flavor's nodes have for all
`}})
}

// first is a remedy's first change alone.
func first(remedy func(*edit.Workload) []edit.Change) func(*edit.Workload) []edit.Change {
	return func(c *edit.Workload) []edit.Change { return remedy(c)[:1] }
}

// claimRefused has Karpenter say that the cloud has refused a machine of pool gpu.
func claimRefused(w *edittest.World, message string) {
	w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "NodeClaim", Name: "gpu-abcde"}, Reason: "InsufficientCapacityError", Message: message, ReportingController: "karpenter", LastTimestamp: metav1.Time{Time: rcatest.Noon}})
}
