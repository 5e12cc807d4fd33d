package outside_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/rcatest"
)

const (
	classed = `{metadata: {name: gpu}, spec: {template: {spec: {nodeClassRef: {kind: %s, name: c}, requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [g6]}]}}}, status: {conditions: [{type: Ready, status: "True"}]}}`
	tooFew  = `incompatible with nodepool "gpu", no instance type has enough resources`
	larger  = `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: let NodePool gpu take larger machines: none that it takes has 1 nvidia.com/gpu at once, beside what DaemonSets take (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.template.spec.requirements}'
  # now: karpenter.k8s.aws/instance-family In g6
  kubectl edit nodepool gpu  # more values for karpenter.k8s.aws/instance-family
`
)

// What no larger type of machine mends is mended where it is: a DaemonSet, a node class's disk, what Karpenter
// is told of devices.
func TestRoomIsMadeWhereItLacks(t *testing.T) {
	of := func(kind string, fills ...func(*edittest.World)) func(*edittest.World) {
		return func(w *edittest.World) {
			add(t, &w.NodePools, fmt.Sprintf(classed, kind))
			says(w, "karpenter", "FailedScheduling", tooFew, 0)
			for _, fill := range fills {
				fill(w)
			}
		}
	}
	daemon := func(affinity string) func(*edittest.World) {
		return func(w *edittest.World) {
			add(t, &w.DaemonSets, `{metadata: {namespace: ops, name: test}, spec: {template: {spec: {`+affinity+`containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}`)
		}
	}
	const off = `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, medium risk: keep DaemonSet ops/test off machines of NodePool gpu, or have it ask for no such device: Karpenter leaves it room there before the pod (the node is not there yet)
`
	const end = `  kubectl edit nodepool gpu  # or larger machines, with enough for both, where there are any
`
	run(t, map[string]row{
		"a DaemonSet": {outside.GrowPool, of("EC2NodeClass", daemon("")), off + `  kubectl -n ops patch daemonset test --type merge -p '{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"karpenter.sh/nodepool","operator":"NotIn","values":["gpu"]}]}]}}}}}}}'
` + end},
		"one with an affinity": {outside.GrowPool, of("EC2NodeClass", daemon("affinity: {podAffinity: {}}, ")), off + `  kubectl -n ops edit daemonset test  # in each term of its required node affinity: {key: karpenter.sh/nodepool, operator: NotIn, values: [gpu]}
` + end},
		"the disk": {outside.GrowPool, of("EC2NodeClass", func(w *edittest.World) {
			list := rcatest.List("nvidia.com/gpu", "1")
			list[corev1.ResourceEphemeralStorage] = rcatest.List("x", "100Gi")["x"]
			w.Asking(list)
			add(t, &w.NodeClasses.AWS, `{metadata: {name: c}, spec: {amiFamily: Bottlerocket}}`)
		}), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, medium risk: have EC2NodeClass c give its machines a larger disk: /dev/xvdb has 20Gi, and 100Gi ephemeral-storage is asked (the node is not there yet)
  kubectl edit ec2nodeclass c  # spec.blockDeviceMappings: {deviceName: /dev/xvdb, ebs: {volumeType: gp3, volumeSize: 113Gi}} or more, for images need room too; instanceStorePolicy: RAID0 takes the machines' own disks instead
  kubectl get nodeclaims -l karpenter.sh/nodepool=gpu  # machines that there are Karpenter replaces one by one (drift)
` + strings.Replace(larger, "1 nvidia.com/gpu at once", "1 nvidia.com/gpu, 100Gi ephemeral-storage at once", 1)},
		"shares": {outside.GrowPool, of("EC2NodeClass", func(w *edittest.World) {
			w.Asking(rcatest.List("nvidia.com/gpu", "2"))
			add(t, &w.NodeClaims, `{metadata: {name: gpu-abcde, labels: {karpenter.sh/nodepool: gpu}}, status: {nodeName: n1, capacity: {nvidia.com/gpu: 1}, conditions: [{type: Launched, status: "True"}, {type: Registered, status: "True"}, {type: Initialized, status: "True"}]}}`)
			add(t, &w.Nodes, "{metadata: {name: n1, labels: {node.kubernetes.io/instance-type: g6.xlarge}}, status: {capacity: {nvidia.com/gpu: 4}, allocatable: {nvidia.com/gpu: 4}}}")
		}), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: tell Karpenter by a NodeOverlay that g6.xlarge offers 4 nvidia.com/gpu, as n1 does
until Karpenter has made such a machine
  echo '{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: nvidia-com-gpu}, spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g6.xlarge]}], capacity: {nvidia.com/gpu: 4}}}' | kubectl apply -f -  # capacity: as many as a machine offers once it is laid out
`},
		"a provider that may not count": {outside.GrowPool, of("OtherClass"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: tell Karpenter by a NodeOverlay how many nvidia.com/gpu machines of NodePool gpu offer, if its provider does not count them: a later one may (the node is not there yet)
  echo '{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: nvidia-com-gpu}, spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [gpu]}], capacity: {nvidia.com/gpu: 1}}}' | kubectl apply -f -  # capacity: as many as a machine offers once it is laid out
  kubectl get deployments -A -o wide | grep -i karpenter  # the version of Karpenter's provider
  kubectl edit nodepool gpu  # or larger machines, if it counts them
`},
		"too small": {outside.GrowPool, of("EC2NodeClass"), larger},
	})
}

// Where no NodePool has an instance type left, one pool's requirements are widened, and of several the
// instance types are looked for.
func TestNoTypeLeft(t *testing.T) {
	none := func(pools ...string) func(*edittest.World) {
		return func(w *edittest.World) {
			for _, p := range pools {
				add(t, &w.NodePools, strings.Replace(fmt.Sprintf(classed, "EC2NodeClass"), "name: gpu", "name: "+p, 1))
				w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "NodePool", Name: p}, Reason: "NoCompatibleInstanceTypes", Message: "none", ReportingController: "karpenter"})
			}
			says(w, "karpenter", "FailedScheduling", "nodepool requirements filtered out all available instance types", 0)
		}
	}
	const look = "  kubectl get deployments,pods -A -o wide | grep -i karpenter  # then its log; where a cloud runs it, ask that cloud\n"
	wide := func(pool string) string {
		return strings.ReplaceAll(larger[strings.Index(larger, "\n")+1:], "nodepool gpu", "nodepool "+pool)
	}
	run(t, map[string]row{
		"of one":     {outside.GrowPool, none("gpu"), "ScaleNodePool for \"AutoscalerCannotHelp\", 0 min, by hand, low risk: let NodePool gpu take other machines too: it is kept to karpenter.k8s.aws/instance-family g6, and of that none is left (the node is not there yet)\n" + wide("gpu") + look},
		"of several": {outside.GrowPool, none("a", "b"), "ScaleNodePool for \"AutoscalerCannotHelp\", 0 min, by hand, low risk: see why Karpenter has no instance type left for any NodePool: its log says what it leaves out; have a node by hand meanwhile (the node is not there yet)\n" + look + wide("b")},
	})
}

// Groups whose machines are too small are told with the largest, and the cloud's own command for another.
func TestLargerGroups(t *testing.T) {
	small := func(provider string) func(*edittest.World) {
		return func(w *edittest.World) {
			w.Asking(rcatest.List("cpu", "8"))
			autoscaler("NotTriggerScaleUp", down+"1 Insufficient cpu", group("grp-x-1", "cloudProviderTarget: 1, maxSize: 3, nodeCounts: {registered: {total: 1, ready: 1}}", ""))(w)
			add(t, &w.Nodes, "{metadata: {name: n1, labels: {agentpool: x}}, spec: {providerID: '"+provider+"'}, status: {capacity: {cpu: 8}, allocatable: {cpu: 7800m}}}")
		}
	}
	want := func(add string) string {
		return "ScaleNodePool for \"AutoscalerCannotHelp\", 0 min, by hand, low risk: add a node group with larger machines, or ask for less cpu: 8 is asked, and a machine such as n1 has 7800m, for the pods of DaemonSets too (the node is not there yet)\n  " + add + "\n  kubectl -n a edit deployment/w  # less cpu, that a machine has\n"
	}
	run(t, map[string]row{
		"Amazon's":  {outside.GrowPool, small("aws:///z/i"), want("eksctl create nodegroup --cluster CLUSTER --name NAME --node-type LARGER --nodes-min 0 --nodes-max 3")},
		"Azure's":   {outside.GrowPool, small("azure:///s"), want("az aks nodepool add --resource-group GROUP --cluster-name CLUSTER --name NAME --node-vm-size LARGER --enable-cluster-autoscaler --min-count 0 --max-count 3 --node-count 1")},
		"Google's":  {outside.GrowPool, small("gce://p/z/n"), want("gcloud container node-pools create NAME --cluster CLUSTER --machine-type LARGER --enable-autoscaling --min-nodes 0 --max-nodes 3")},
		"another's": {outside.GrowPool, small(""), want("# add a node group of a larger type with the cloud's own command")},
	})
}

// A machine that is not launched is mended where its class asks for what may not be; one that does not join is
// looked at in the cloud, by the role that its class gives it.
func TestMachinesThatDoNotCome(t *testing.T) {
	claim := func(conditions string, fills ...func(*edittest.World)) func(*edittest.World) {
		return func(w *edittest.World) {
			add(t, &w.NodeClaims, fmt.Sprintf(`{metadata: {name: gpu-abcde, labels: {karpenter.sh/nodepool: gpu}, creationTimestamp: %q}, spec: {resources: {requests: {nvidia.com/gpu: 1}}}, status: {providerID: "aws:///z/i-1", conditions: [%s]}}`, rcatest.Noon.Add(-time.Hour).Format(time.RFC3339), conditions))
			add(t, &w.NodePools, fmt.Sprintf(classed, "EC2NodeClass"))
			for _, fill := range fills {
				fill(w)
			}
		}
	}
	aws := func(w *edittest.World) { add(t, &w.Nodes, "{metadata: {name: s}, spec: {providerID: 'aws:///z/i-9'}}") }
	role := func(w *edittest.World) { add(t, &w.NodeClasses.AWS, `{metadata: {name: c}, spec: {role: r}}`) }
	const joins = `{type: Launched, status: "True"}, {type: Registered, status: Unknown}`
	const not = "ScaleNodePool for \"ScaleUpStuck\", 0 min, by hand, none risk: see why machines of NodePool gpu do not join: image and user data of EC2NodeClass c, network, and whether the cluster lets their role in (the node is not there yet)\n  kubectl describe nodeclaim gpu-abcde\n"
	const end = "  kubectl -n default get events --field-selector involvedObject.kind=NodeClaim\n  kubectl delete nodeclaim gpu-abcde  # once it is mended: Karpenter makes another\n"
	entries := func(role string) string {
		return "  aws eks list-access-entries --cluster-name CLUSTER  # the machines' role " + role + " has to be there (type EC2_LINUX; of Auto Mode EC2), or in ConfigMap kube-system/aws-auth\n  aws ec2 get-console-output --latest --output text --instance-id i-1  # what nodeadm and kubelet say\n"
	}
	launch := func(why string) string {
		return "ScaleNodePool for \"ScaleUpStuck\", 0 min, by hand, none risk: mend what keeps Karpenter from launching a machine for NodePool gpu: " + why + " (the node is not there yet)\n  kubectl describe nodeclaim gpu-abcde\n  kubectl get ec2nodeclass c -o yaml\n"
	}
	run(t, map[string]row{
		"with its role":      {outside.LookAtPromise, claim(joins, aws, role), not + entries("r") + end},
		"of no role":         {outside.LookAtPromise, claim(joins, aws), not + entries("ROLE") + end},
		"another cloud's":    {outside.LookAtPromise, claim(joins), not + "  # a machine that boots and never joins: its image, user data, role and network\n" + end},
		"it may not":         {outside.LookAtPromise, claim(`{type: Launched, status: Unknown, reason: UnauthorizedOperation, message: denied}`), launch("UnauthorizedOperation: denied") + "  kubectl edit ec2nodeclass c  # ask for nothing that Karpenter's role may not give (tags, images, subnets), or let the role do it; Karpenter tries again by itself\n"},
		"for another reason": {outside.LookAtPromise, claim(`{type: Launched, status: "False", reason: LaunchFailed, message: denied}`), launch("LaunchFailed: denied")},
	})
}

// While the autoscaler counts on a machine that the cloud refuses, another group that could hold the pod is
// grown by hand; where it has looked again, it has found none.
func TestAnotherGroupByHand(t *testing.T) {
	status := group("aks-gpu-1", "cloudProviderTarget: 1, maxSize: 3", "  scaleUp: {status: Backoff, backoffInfo: {errorCode: InternalError, errorMessage: Out of host capacity.}}\n") + group("aks-more-1", "cloudProviderTarget: 1, maxSize: 3, nodeCounts: {registered: {total: 1, ready: 1}}", "")
	more := func(fill func(*edittest.World)) func(*edittest.World) {
		return func(w *edittest.World) {
			fill(w)
			add(t, &w.Nodes, "{metadata: {name: n1, labels: {agentpool: more}}, spec: {providerID: 'azure:///s'}, status: {capacity: {nvidia.com/gpu: 1}, allocatable: {nvidia.com/gpu: 1}}}")
		}
	}
	const hand = `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: scale node group aks-more-1 up by one machine by hand: its machines could hold the pod, and it may have more
until node group aks-more-1 has a node more
  az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name more --update-cluster-autoscaler --min-count 2 --max-count 3
  kubectl -n a get pod w -w
`
	const rest = `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: let the pool take other machines: more zones, instance types or on-demand beside spot, or a reservation (only the cloud knows what it has)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  # then add a node group of another zone, instance type or capacity type
Wait for "CloudCapacityRefused", 0 min, by hand, none risk: wait until the cloud has such a machine: the autoscaler tries again by itself (nobody knows when the cloud has one)
until the cloud has such a machine
  kubectl -n a get pod w -w
`
	run(t, map[string]row{
		"it counts on it":   {outside.RefusedByCloud, more(autoscaler("TriggeredScaleUp", "pod triggered scale-up: [{aks-gpu-1 0->1 (max: 3)}]", status)), hand + rest},
		"it has looked":     {outside.RefusedByCloud, more(autoscaler("NotTriggerScaleUp", down+"1 in backoff after failed scale-up, 1 something", status)), rest},
		"there is no other": {outside.RefusedByCloud, autoscaler("TriggeredScaleUp", "pod triggered scale-up: [{aks-gpu-1 0->1 (max: 3)}]", status), rest},
	})
}
