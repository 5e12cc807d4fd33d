package outside_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/outside/refused"
	"github.com/unpend/unpend/rca/rcatest"
)

// Where an object says itself what it lacks, the change is that object's: a key and a value, and not where to look.
func TestChangesNameTheObjectAndItsField(t *testing.T) {
	shut := func(class, why string) func(*edittest.World) {
		return func(w *edittest.World) {
			w.Wait.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			add(t, &w.NodePools, fmt.Sprintf(`{metadata: {name: gpu}, spec: {limits: {nvidia.com/gpu: 8}, template: {spec: {nodeClassRef: {kind: %s, name: c}}}}, status: {conditions: [{type: NodeClassReady, status: "False", reason: %s}, {type: Ready, status: "False", reason: UnhealthyDependents, message: NodeClassReady=False}]}}`, class, why))
		}
	}
	closed := func(policy, reason, message string) func(*edittest.World) {
		return func(w *edittest.World) {
			gated(w)
			add(t, &w.Queues.Local, `{metadata: {namespace: a, name: team}, spec: {clusterQueue: gpus}}`)
			add(t, &w.Queues.Cluster, fmt.Sprintf(`{metadata: {name: gpus}, spec: {stopPolicy: %q}, status: {conditions: [{type: Active, status: "False", reason: %q, message: %q}]}}`, policy, reason, message))
			add(t, &w.Queues.Checks, `{metadata: {name: dws}, spec: {controllerName: kueue.x-k8s.io/provisioning-request}}`)
		}
	}
	lacking := func(group string) func(*edittest.World) {
		return autoscaler("NotTriggerScaleUp", down+"1 Insufficient nvidia.com/gpu", group+"\n  health: {cloudProviderTarget: 0, minSize: 0, maxSize: 3}\n")
	}
	run(t, map[string]row{
		"subnets that are not found": {outside.GrowPool, func(w *edittest.World) {
			shut("EC2NodeClass", "{}")(w)
			add(t, &w.NodeClasses.AWS, `{metadata: {name: c}, spec: {role: r}, status: {conditions: [{type: SubnetsReady, status: "False", reason: SubnetsNotFound, message: SubnetSelector did not match any Subnets}, {type: Ready, status: "False", reason: UnhealthyDependents, message: SubnetsReady=False}]}}`)
		}, `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: mend EC2NodeClass c, which NodePool gpu makes its machines by, in its spec.subnetSelectorTerms: SubnetsReady=False SubnetsNotFound: SubnetSelector did not match any Subnets (the node is not there yet)
  kubectl get ec2nodeclass c -o jsonpath='{.spec.subnetSelectorTerms}'
  kubectl describe ec2nodeclass c
  kubectl edit ec2nodeclass c
  kubectl get nodepool gpu -w
`},
		"a role of Auto Mode": {outside.GrowPool, shut("NodeClass", "UnhealthyDependents, message: InstanceProfileReady=False"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: let the machines of NodePool gpu into the cluster: the role that NodeClass c names has no access entry of type EC2, or a path in its name, or EKS may not make a profile of it (the node is not there yet)
  kubectl describe nodeclass c  # spec.role, and its condition InstanceProfileReady
  aws eks list-access-entries --cluster-name CLUSTER
  aws eks create-access-entry --cluster-name CLUSTER --type EC2 --principal-arn arn:aws:iam::ACCOUNT:role/ROLE
  aws eks associate-access-policy --cluster-name CLUSTER --principal-arn arn:aws:iam::ACCOUNT:role/ROLE --policy-arn arn:aws:eks::aws:cluster-access-policy/AmazonEKSAutoNodePolicy --access-scope type=cluster
  aws iam get-role --role-name ROLE --query Role.Arn  # with a path, as role/team/NAME, Auto Mode does not find its entry: another role, without
  kubectl get nodeclass c -w
`},
		"a role of Auto Mode that its class tells of": {outside.GrowPool, func(w *edittest.World) {
			shut("NodeClass", "{}")(w)
			add(t, &w.NodeClasses.AutoMode, `{metadata: {name: c}, spec: {role: r}, status: {conditions: [{type: InstanceProfileReady, status: "False", reason: NotFound}, {type: Ready, status: "False", reason: UnhealthyDependents}]}}`)
		}, `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: let the machines of NodePool gpu into the cluster: role r of NodeClass c has no access entry of type EC2, or a path in its name (the node is not there yet)
  kubectl describe nodeclass c  # spec.role, and its condition InstanceProfileReady
  aws eks list-access-entries --cluster-name CLUSTER
  aws eks create-access-entry --cluster-name CLUSTER --type EC2 --principal-arn arn:aws:iam::ACCOUNT:role/r
  aws eks associate-access-policy --cluster-name CLUSTER --principal-arn arn:aws:iam::ACCOUNT:role/r --policy-arn arn:aws:eks::aws:cluster-access-policy/AmazonEKSAutoNodePolicy --access-scope type=cluster
  aws iam get-role --role-name r --query Role.Arn  # with a path, as role/team/NAME, Auto Mode does not find its entry: another role, without
  kubectl get nodeclass c -w
`},
		"a class that is not there": {outside.GrowPool, shut("EC2NodeClass", "NodeClassNotFound, message: NodeClass not found on cluster"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: make EC2NodeClass c, which NodePool gpu names, or name one that exists (the node is not there yet)
  kubectl get ec2nodeclass
  kubectl edit nodepool gpu  # spec.template.spec.nodeClassRef
`},
		"annotations of Cluster API": {outside.GrowPool, lacking("- name: MachineDeployment/capi/gpu"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: tell the cluster autoscaler by annotations of MachineDeployment capi/gpu what its machines have, nvidia.com/gpu among it: at zero it knows no more of them (the node is not there yet)
  kubectl -n capi annotate machinedeployments.cluster.x-k8s.io gpu capacity.cluster-autoscaler.kubernetes.io/gpu-type=nvidia.com/gpu capacity.cluster-autoscaler.kubernetes.io/gpu-count=1 capacity.cluster-autoscaler.kubernetes.io/cpu=CPUS capacity.cluster-autoscaler.kubernetes.io/memory=MEMORY --overwrite  # in the cluster that manages this one, which may be this one
  kubectl -n capi scale machinedeployments.cluster.x-k8s.io gpu --replicas=1  # or by hand: of a machine that is there it sees what it has; in the cluster that manages this one, which may be this one
  kubectl -n a get pod w -w
`},
		"a MachineSet of OpenShift": {outside.GrowPool, lacking("- name: MachineSet/openshift-machine-api/gpu"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: tell the cluster autoscaler by annotations of MachineSet openshift-machine-api/gpu what its machines have, nvidia.com/gpu among it: at zero it knows no more of them (the node is not there yet)
  kubectl -n openshift-machine-api annotate machinesets.machine.openshift.io gpu capacity.cluster-autoscaler.kubernetes.io/gpu-type=nvidia.com/gpu capacity.cluster-autoscaler.kubernetes.io/gpu-count=1 capacity.cluster-autoscaler.kubernetes.io/cpu=CPUS capacity.cluster-autoscaler.kubernetes.io/memory=MEMORY --overwrite  # in the cluster that manages this one, which may be this one
  kubectl -n openshift-machine-api scale machinesets.machine.openshift.io gpu --replicas=1  # or by hand: of a machine that is there it sees what it has; in the cluster that manages this one, which may be this one
  kubectl -n a get pod w -w
`},
		"a queue that somebody stopped": {outside.MendQueue, closed("Hold", "Stopped", "is stopped"), `Manual for "QueueMisconfigured", 0 min, by hand, low risk: open ClusterQueue gpus again, if who stopped it agrees: its stopPolicy is Hold
until ClusterQueue gpus admits workloads
  kubectl describe clusterqueues.kueue.x-k8s.io gpus
  kubectl patch clusterqueues.kueue.x-k8s.io gpus --type merge -p '{"spec":{"stopPolicy":"None"}}'
`},
		"checks that are not there": {outside.MendQueue, closed("None", "AdmissionCheckNotFound", "Can't admit new workloads: references missing AdmissionCheck(s): x,y."), `Manual for "QueueMisconfigured", 0 min, by hand, low risk: make AdmissionCheck x, y, or have ClusterQueue gpus name one that exists
until ClusterQueue gpus admits workloads
  kubectl get admissionchecks.kueue.x-k8s.io
  kubectl edit clusterqueues.kueue.x-k8s.io gpus  # where it names x, y
`},
		"a check that is not active": {outside.MendQueue, closed("None", "AdmissionCheckInactive", "Can't admit new workloads: references inactive AdmissionCheck(s): [x]."), `Manual for "QueueMisconfigured", 0 min, by hand, low risk: mend AdmissionCheck x, or take it out of ClusterQueue gpus: it is not active
until ClusterQueue gpus admits workloads
  kubectl describe admissionchecks.kueue.x-k8s.io x  # its condition Active, and spec.parameters
  kubectl edit clusterqueues.kueue.x-k8s.io gpus  # where it names x
`},
		"checks that exclude": {outside.MendQueue, closed("None", "MultiKueueWithProvisioningRequest", "Can't admit new workloads: Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: mk, dws."), `Manual for "QueueMisconfigured", 0 min, by hand, low risk: take admission check dws out of ClusterQueue gpus: Kueue does not ask for machines (ProvisioningRequest) where mk gives workloads to other clusters (MultiKueue)
until ClusterQueue gpus admits workloads
  kubectl edit clusterqueues.kueue.x-k8s.io gpus  # spec.admissionChecksStrategy.admissionChecks without dws
  # machines are asked for by the ClusterQueues of the clusters that it gives them to: there that check belongs
`},
		"else in its words": {outside.MendQueue, closed("None", "Terminating", "clusterQueue is terminating"), `Manual for "QueueMisconfigured", 0 min, by hand, low risk: mend ClusterQueue gpus, which is not active: Terminating: clusterQueue is terminating
until ClusterQueue gpus admits workloads
  kubectl describe clusterqueues.kueue.x-k8s.io gpus
  kubectl edit clusterqueues.kueue.x-k8s.io gpus
`},
		"an agent that a taint keeps away": {refused.Ask, func(w *edittest.World) {
			w.Wait.Spec.SchedulerName = "koord-scheduler"
			w.Wait.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
			w.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
			w.Wait.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 node(s) missing Device."}}
			w.DaemonSets = append(w.DaemonSets, &appsv1.DaemonSet{})
			w.DaemonSets[0].Namespace, w.DaemonSets[0].Name = "koord", "koordlet"
		}, `Manual for "SchedulerRefused", 0 min, by hand, none risk: have DaemonSet koord/koordlet run on n: without its report koord-scheduler takes the node for one without devices; it does not tolerate taint team=x:NoSchedule (koord-scheduler decides by its own rules, which are not run here)
  kubectl -n koord patch daemonset koordlet --type=merge -p '{"spec":{"template":{"spec":{"tolerations":[{"key":"team","operator":"Equal","value":"x","effect":"NoSchedule"}]}}}}'
  kubectl -n koord get pods -o wide | grep koordlet
  kubectl get devices.scheduling.koordinator.sh n
Manual for "SchedulerRefused", 0 min, by hand, none risk: see by which rule koord-scheduler refuses it (koord-scheduler decides by its own rules, which are not run here)
  kubectl -n a describe pod w
  kubectl get pods -A -o wide | grep -i koord-scheduler  # then its log
`},
	})
}

// Where GPUs are held for good and no autoscaler is seen, their pool is given more machines by hand: one that is full, whose own
// would hold the pod. Who ends by itself is waited for.
func TestAPoolIsGivenMachinesByHand(t *testing.T) {
	const more = `ScaleNodePool for "GPUsInUse", 0 min, by hand, low risk: give node pool l4 1 machine more by hand: its own would hold the pod, and no autoscaler is seen that grows it
until node pool l4 has 1 node more
  aws eks update-nodegroup-config --cluster-name CLUSTER --nodegroup-name l4 --scaling-config desiredSize=2  # with maxSize=2 too where that is less
  kubectl -n a get pod w -w
`
	for name, tc := range map[string]struct {
		fill func(*edittest.World)
		want string
	}{
		"held for good":           {func(*edittest.World) {}, more},
		"who ends by itself":      {func(w *edittest.World) { w.Pods[len(w.Pods)-1].Spec.RestartPolicy = corev1.RestartPolicyNever }, ""},
		"an autoscaler":           {func(w *edittest.World) { groups(w, "- name: eks-l4-1\n  health: {maxSize: 1}\n") }, ""},
		"a pool that has no name": {func(w *edittest.World) { delete(w.Nodes[0].Labels, "eks.amazonaws.com/nodegroup") }, ""},
		"it is gated":             {func(w *edittest.World) { gated(w) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			w.Asking(rcatest.List("nvidia.com/gpu", "1"))
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
			w.AddHolder("h", "n", "nvidia.com/gpu", 0).Spec.RestartPolicy = corev1.RestartPolicyAlways
			w.Nodes[0].Labels["eks.amazonaws.com/nodegroup"], w.Nodes[0].Spec.ProviderID = "l4", "aws:///z/i-1"
			tc.fill(w)
			k := w.Case(t, "Deployment")
			w.Look(t, k)
			k.Judged = []diagnosis.NodeBlockers{{Name: "n", Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Cause: diagnosis.GPUsInUse}}}}
			if got := whole(outside.AddByHand(edit.New(k))); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
