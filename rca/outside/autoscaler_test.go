package outside_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/rcatest"
)

// whole is changes with all that a person reads of them: kind, risk, minutes and title, until
// when, and each command.
func whole(all []edit.Change) string {
	var out strings.Builder
	for _, ch := range all {
		fmt.Fprintf(&out, "%s for %q, %d min, %s\n", ch.Kind, ch.Cause, ch.Minutes, edittest.Told(ch))
		if ch.Until != "" {
			out.WriteString("until " + ch.Until + "\n")
		}
		for _, c := range ch.Commands {
			out.WriteString("  " + strings.ReplaceAll(c, "\n", "\n  ") + "\n")
		}
	}
	return out.String()
}

// says adds an Event about the pod, so long ago.
func says(w *edittest.World, by, reason, message string, ago time.Duration) {
	w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: "w", UID: "w"}, Reason: reason, Message: message, ReportingController: by, LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}})
}

// groups is the cluster autoscaler's status.
func groups(w *edittest.World, list string) {
	w.ConfigMaps = append(w.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: cluster.AutoscalerStatus,
		Annotations: map[string]string{"cluster-autoscaler.kubernetes.io/last-updated": rcatest.Noon.Format(time.RFC3339)}}, Data: map[string]string{"status": "autoscalerStatus: Running\nnodeGroups:\n" + list}})
}

// add parses an object into a list of the state.
func add[T any](t *testing.T, list *[]*T, text string) {
	t.Helper()
	o := new(T)
	into := any(o)
	if u, ok := into.(*unstructured.Unstructured); ok {
		into = &u.Object
	}
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	*list = append(*list, o)
}

// outcome is what a remedy makes of a world in which pod a/w waits for a GPU.
func outcome(t *testing.T, remedy func(*edit.Workload) []edit.Change, fill func(*edittest.World)) string {
	t.Helper()
	w := edittest.New()
	w.Asking(rcatest.List("nvidia.com/gpu", "1"))
	fill(w)
	return whole(remedy(edit.New(w.Case(t, "Deployment"))))
}

type row struct {
	remedy func(*edit.Workload) []edit.Change
	fill   func(*edittest.World)
	want   string
}

func run(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, r.remedy, r.fill); got != r.want {
				t.Errorf("got\n%s\nwant\n%s", got, r.want)
			}
		})
	}
}

const (
	up   = "pod triggered scale-up: [{eks-gpu-1 0->1 (max: 3)}]"
	down = "pod didn't trigger scale-up: "
	pool = `{metadata: {name: gpu}, spec: {limits: {nvidia.com/gpu: 8}, template: {spec: {requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [a, b]}]}}}, status: {resources: {nvidia.com/gpu: 8}, conditions: [{type: Ready, status: "True"}]}}`
)

func autoscaler(reason, message string, list ...string) func(*edittest.World) {
	return func(w *edittest.World) {
		says(w, "cluster-autoscaler", reason, message, 2*time.Minute)
		if len(list) > 0 {
			groups(w, strings.Join(list, "\n"))
		}
	}
}

func group(name, health, rest string) string {
	return "- name: " + name + "\n  health: {" + health + "}\n" + rest
}

// A node on its way is waited for no longer than it may take; one that did not come is looked
// for where it was last seen.
func TestNodesOnTheirWay(t *testing.T) {
	claim := func(node string) func(*edittest.World) {
		return func(w *edittest.World) {
			add(t, &w.NodeClaims, fmt.Sprintf(`{metadata: {name: gpu-abcde, labels: {karpenter.sh/nodepool: gpu}, creationTimestamp: %q}, spec: {resources: {requests: {nvidia.com/gpu: 1}}}, status: {nodeName: %q, conditions: [{type: Launched, status: "True"}, {type: Registered, status: Unknown}]}}`, rcatest.Noon.Add(-4*time.Minute).Format(time.RFC3339), node))
		}
	}
	run(t, map[string]row{
		"no node at all": {outside.AddNode, func(*edittest.World) {}, `ScaleNodePool for "", 0 min, by hand, low risk: add a node with such GPUs to the cluster (the node is not there yet)
  kubectl get nodes
  # then scale a node pool with the cloud's or the autoscaler's own command
`},
		"the cluster autoscaler's": {outside.WaitForAutoscaler, autoscaler("TriggeredScaleUp", up), `Wait for "ScalingUp", 3 min, by hand, none risk: wait for the node that the autoscaler brings
until the autoscaler's node is Ready; not later than 2026-11-20T12:13:00Z, then it is stuck
  kubectl -n a get pod w -w
  kubectl get nodes -w
`},
		"late": {outside.WaitForAutoscaler, func(w *edittest.World) { says(w, "cluster-autoscaler", "TriggeredScaleUp", up, 9*time.Minute) }, `Wait for "ScalingUp", 1 min, by hand, none risk: wait for the node that the autoscaler brings
until the autoscaler's node is Ready; not later than 2026-11-20T12:06:00Z, then it is stuck
  kubectl -n a get pod w -w
  kubectl get nodes -w
`},
		"of nobody who says when": {outside.WaitForAutoscaler, func(*edittest.World) {}, `Wait for "ScalingUp", 5 min, by hand, none risk: wait for the node that the autoscaler brings
until the autoscaler's node is Ready
  kubectl -n a get pod w -w
  kubectl get nodes -w
`},
		"Karpenter's": {outside.WaitForAutoscaler, claim(""), `Wait for "ScalingUp", 1 min, by hand, none risk: wait for the node that the autoscaler brings
until the autoscaler's node is Ready; not later than 2026-11-20T12:11:00Z, then it is stuck
  kubectl -n a get pod w -w
  kubectl get nodes -w
  kubectl get nodeclaim gpu-abcde -o wide -w
`},
		"a claim without a node": {outside.LookAtPromise, claim(""), `ScaleNodePool for "ScaleUpStuck", 0 min, by hand, none risk: see why the promised node did not come (the node is not there yet)
  kubectl describe nodeclaim gpu-abcde
  # a machine that boots and never joins: its image, user data, role and network
  kubectl -n default get events --field-selector involvedObject.kind=NodeClaim
  kubectl delete nodeclaim gpu-abcde  # once it is mended: Karpenter makes another
`},
		"a claim with a node": {outside.LookAtPromise, claim("n1"), `Manual for "ScaleUpStuck", 0 min, by hand, none risk: see why n1 came without what it was to bring (what the node lacks is not known to the scheduler)
  kubectl describe nodeclaim gpu-abcde
  kubectl describe node n1
  kubectl get pods -A -o wide --field-selector spec.nodeName=n1  # its driver, toolkit and device plugin
`},
		"Karpenter's word alone": {outside.LookAtPromise, func(w *edittest.World) {
			w.Unread["NodeClaim"] = "x"
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/x-1", 0)
		}, `ScaleNodePool for "ScaleUpStuck", 0 min, by hand, none risk: see why the promised node did not come (the node is not there yet)
  kubectl get nodeclaims -o wide
  kubectl -n default get events --field-selector involvedObject.kind=NodeClaim
  kubectl get nodes --sort-by=.metadata.creationTimestamp  # a new one without GPUs: its driver or device plugin
`},
		"the autoscaler's word only": {outside.LookAtPromise, autoscaler("TriggeredScaleUp", up), `ScaleNodePool for "ScaleUpStuck", 0 min, by hand, none risk: see at the cloud what became of the node that group eks-gpu-1 promised (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  kubectl -n kube-system get events --field-selector involvedObject.name=cluster-autoscaler-status
  # then what the cloud says of the machines of eks-gpu-1: were they refused, or do they run and not join
  kubectl get nodes --sort-by=.metadata.creationTimestamp  # a new one without GPUs: its driver or device plugin
`},
	})
}

// Of a node that came without its GPUs what mends it is offered, and its promise is not looked for;
// with its NodeClaim it is looked at there, too.
func TestNodesThatCameWithoutGPUs(t *testing.T) {
	claim := func(w *edittest.World) {
		at := rcatest.Noon.Add(-time.Hour).Format(time.RFC3339)
		add(t, &w.NodeClaims, fmt.Sprintf(`{metadata: {name: gpu-abcde, labels: {karpenter.sh/nodepool: gpu}, creationTimestamp: %q}, spec: {resources: {requests: {nvidia.com/gpu: 1}}}, status: {nodeName: n1, conditions: [{type: Launched, status: "True"}, {type: Registered, status: "True", lastTransitionTime: %q}, {type: Initialized, status: Unknown, lastTransitionTime: %q}]}}`, at, at, at))
	}
	group := func(w *edittest.World) { says(w, "cluster-autoscaler", "TriggeredScaleUp", up, 20*time.Minute) }
	for name, tc := range map[string]struct {
		fill  func(*edittest.World)
		ready string
		cause diagnosis.CauseID
		want  string
	}{
		"of a group":                {group, "True", diagnosis.GPUStackMissing, ""},
		"for another reason":        {group, "True", diagnosis.GPUsInUse, "see at the cloud what became of the node that group eks-gpu-1 promised"},
		"of a NodeClaim, and why":   {claim, "True", diagnosis.GPUStackMissing, "see why n1 came without what it was to bring"},
		"of one that is not ready":  {claim, "False", diagnosis.GPUStackMissing, "have Karpenter replace n1, which is not ready"},
		"of a group, and not ready": {group, "False", diagnosis.GPUStackMissing, "see at the cloud what became of the node that group eks-gpu-1 promised"},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			w.Asking(rcatest.List("nvidia.com/gpu", "1"))
			tc.fill(w)
			since := rcatest.Noon.Add(-10 * time.Minute).Format(time.RFC3339)
			add(t, &w.Nodes, fmt.Sprintf("{metadata: {name: n1, creationTimestamp: %q}, status: {conditions: [{type: Ready, status: %q, lastTransitionTime: %q}]}}", since, tc.ready, since))
			k := w.Case(t, "Deployment")
			k.Judged = []diagnosis.NodeBlockers{{Name: "n1", Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Cause: tc.cause}}}}
			got := ""
			for _, ch := range outside.LookAtPromise(edit.New(k)) {
				got += ch.Title
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// What helps against a cloud that refuses a machine goes by why: quota is asked of the cloud,
// addresses and rights are set up, and of what it has not now another kind is taken, or waited
// for.
func TestCloudsThatRefuse(t *testing.T) {
	karpenter := func(reason string, pools ...string) func(*edittest.World) {
		return func(w *edittest.World) {
			add(t, &w.NodeClaims, fmt.Sprintf(`{metadata: {name: gpu-abcde, labels: {karpenter.sh/nodepool: gpu}, creationTimestamp: %q}, spec: {resources: {requests: {nvidia.com/gpu: 1}}}, status: {conditions: [{type: Launched, status: Unknown, reason: LaunchFailed, message: %s}]}}`, rcatest.Noon.Format(time.RFC3339), reason))
			for _, p := range pools {
				add(t, &w.NodePools, p)
			}
		}
	}
	backoff := func(name, code string) func(*edittest.World) {
		return autoscaler("TriggeredScaleUp", "pod triggered scale-up: [{"+name+" 0->1 (max: 3)}]", group(name, "cloudProviderTarget: 1, maxSize: 3", "  scaleUp: {status: Backoff, backoffInfo: {errorCode: "+code+", errorMessage: no}}"))
	}
	run(t, map[string]row{
		"quota of Google's": {outside.RefusedByCloud, backoff("https://www.googleapis.com/c/zones/z/gke-gpu-grp", "QUOTA_EXCEEDED"), `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: have the cloud account's quota raised (QUOTA_EXCEEDED): nothing in the cluster changes that (only the cloud knows what it has)
  gcloud compute regions describe REGION --format='table(quotas.metric,quotas.limit,quotas.usage)' | grep GPU
  # then ask for more: https://console.cloud.google.com/iam-admin/quotas
`},
		"quota of Azure's": {outside.RefusedByCloud, backoff("aks-gpu-vmss", "SubscriptionQuotaReached"), `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: have the cloud account's quota raised (SubscriptionQuotaReached): nothing in the cluster changes that (only the cloud knows what it has)
  az vm list-usage --location LOCATION -o table
  # then ask for more: az support or the portal, Usage + quotas
`},
		"quota of AWS's": {outside.RefusedByCloud, karpenter("VcpuLimitExceeded", pool), `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: have the cloud account's quota raised (VcpuLimitExceeded): nothing in the cluster changes that (only the cloud knows what it has)
  kubectl -n default get events --field-selector involvedObject.kind=NodeClaim
  kubectl get nodepool gpu -o yaml
  aws service-quotas list-service-quotas --service-code ec2 --query "Quotas[?contains(QuotaName,'Running On-Demand') || contains(QuotaName,'Spot')].[QuotaName,QuotaCode,Value]" --output table
  aws service-quotas request-service-quota-increase --service-code ec2 --quota-code CODE --desired-value VCPUS
`},
		"no address": {outside.RefusedByCloud, karpenter("InsufficientFreeAddressesInSubnet", pool), `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: give the pool a subnet with free addresses (only the cloud knows what it has)
  kubectl -n default get events --field-selector involvedObject.kind=NodeClaim
  kubectl get nodepool gpu -o yaml
  # then add a larger subnet to the pool's node class or node group
`},
		"not set up": {outside.RefusedByCloud, backoff("eks-gpu-1", "AMINotFound"), `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: correct what the cloud refuses (AMINotFound) (only the cloud knows what it has)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
`},
		"nothing left, by Karpenter": {outside.RefusedByCloud, karpenter("InsufficientInstanceCapacity", pool), `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: let NodePool gpu take other machines too: it is kept to topology.kubernetes.io/zone a, b, of which the cloud has none left (only the cloud knows what it has)
  kubectl get nodepool gpu -o jsonpath='{.spec.template.spec.requirements}'
  # now: topology.kubernetes.io/zone In a, b
  kubectl edit nodepool gpu  # more values for topology.kubernetes.io/zone
Wait for "CloudCapacityRefused", 0 min, by hand, none risk: wait until the cloud has such a machine: the autoscaler tries again by itself (nobody knows when the cloud has one)
until the cloud has such a machine
  kubectl -n a get pod w -w
`},
		"nothing left, pool unknown": {outside.RefusedByCloud, karpenter("InsufficientInstanceCapacity"), `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: let the pool take other machines: more zones, instance types or on-demand beside spot, or a reservation (only the cloud knows what it has)
  kubectl get nodepools
  # then kubectl edit nodepool NAME: spec.template.spec.requirements
Wait for "CloudCapacityRefused", 0 min, by hand, none risk: wait until the cloud has such a machine: the autoscaler tries again by itself (nobody knows when the cloud has one)
until the cloud has such a machine
  kubectl -n a get pod w -w
`},
		"nothing left, in a group": {outside.RefusedByCloud, backoff("eks-gpu-1", "placeholder-cannot-be-fulfilled"), `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: see at the cloud why node group eks-gpu-1 gets no machine, and have a group of another zone or instance type beside it (only the cloud knows what it has)
  kubectl -n kube-system get events --field-selector involvedObject.name=cluster-autoscaler-status
  aws autoscaling describe-scaling-activities --auto-scaling-group-name eks-gpu-1 --max-items 5
  # what the cloud has no more of there: a node group of another zone, instance type or capacity type
Wait for "CloudCapacityRefused", 0 min, by hand, none risk: wait until the cloud has such a machine: the autoscaler tries again by itself (nobody knows when the cloud has one)
until the cloud has such a machine
  kubectl -n a get pod w -w
`},
		"nobody knows with what code": {outside.RefusedByCloud, autoscaler("NotTriggerScaleUp", down+"1 in backoff after failed scale-up"), `ScaleNodePool for "CloudCapacityRefused", 0 min, by hand, low risk: let the pool take other machines: more zones, instance types or on-demand beside spot, or a reservation (only the cloud knows what it has)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  # then add a node group of another zone, instance type or capacity type
Wait for "CloudCapacityRefused", 0 min, by hand, none risk: wait until the cloud has such a machine: the autoscaler tries again by itself (nobody knows when the cloud has one)
until the cloud has such a machine
  kubectl -n a get pod w -w
`},
	})
}

// What is at its limit is raised where the limit stands, by a machine: of a NodePool, of the
// autoscaler itself, or of a group by the cloud's own command.
func TestLimitsAreRaised(t *testing.T) {
	full := func(name, most string) func(*edittest.World) {
		return autoscaler("NotTriggerScaleUp", down+"1 max node group size reached", group(name, "cloudProviderTarget: 2, minSize: 1, maxSize: "+most+", nodeCounts: {registered: {total: 2, ready: 2}}", ""))
	}
	on := func(provider string, labels string, fill func(*edittest.World)) func(*edittest.World) {
		return func(w *edittest.World) {
			fill(w)
			add(t, &w.Nodes, "{metadata: {name: n1, labels: {"+labels+"}}, spec: {providerID: '"+provider+"'}, status: {capacity: {nvidia.com/gpu: 4}, allocatable: {nvidia.com/gpu: 4}}}")
		}
	}
	pools := func(list ...string) func(*edittest.World) {
		return func(w *edittest.World) {
			for _, p := range list {
				add(t, &w.NodePools, p)
			}
			says(w, "karpenter", "FailedScheduling", `all available instance types exceed limits for nodepool (NodePool=gpu)`, 0)
		}
	}
	other := func(limits, used string) string {
		return `{metadata: {name: gpu}, spec: {limits: ` + limits + `}, status: {resources: ` + used + `, conditions: [{type: Ready, status: "True"}]}}`
	}
	run(t, map[string]row{
		"a NodePool": {outside.RaiseLimit, pools(pool), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of NodePool gpu by a machine (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.limits}{"\n"}{.status.resources}{"\n"}'
  kubectl patch nodepool gpu --type merge -p '{"spec":{"limits":{"nvidia.com/gpu":"9"}}}'
`},
		"by its largest machine": {outside.RaiseLimit, on("", "karpenter.sh/nodepool: gpu", pools(pool)), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of NodePool gpu by a machine (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.limits}{"\n"}{.status.resources}{"\n"}'
  kubectl patch nodepool gpu --type merge -p '{"spec":{"limits":{"nvidia.com/gpu":"12"}}}'
`},
		"not by another pool's": {outside.RaiseLimit, on("", "karpenter.sh/nodepool: cpu", pools(pool)), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of NodePool gpu by a machine (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.limits}{"\n"}{.status.resources}{"\n"}'
  kubectl patch nodepool gpu --type merge -p '{"spec":{"limits":{"nvidia.com/gpu":"9"}}}'
`},
		"room, but for no machine": {outside.RaiseLimit, pools(other("{nvidia.com/gpu: 8, cpu: 64}", "{nvidia.com/gpu: 4, cpu: 4}")), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of NodePool gpu by a machine (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.limits}{"\n"}{.status.resources}{"\n"}'
  kubectl patch nodepool gpu --type merge -p '{"spec":{"limits":{"nvidia.com/gpu":"16"}}}'
`},
		"room, but not for its machine": {outside.RaiseLimit, on("", "karpenter.sh/nodepool: gpu", pools(other("{nvidia.com/gpu: 8, cpu: 64}", "{nvidia.com/gpu: 5, cpu: 4}"))), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of NodePool gpu by a machine (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.limits}{"\n"}{.status.resources}{"\n"}'
  kubectl patch nodepool gpu --type merge -p '{"spec":{"limits":{"nvidia.com/gpu":"9"}}}'
`},
		"memory that it does not ask": {outside.RaiseLimit, pools(other("{nvidia.com/gpu: 8, memory: 64Gi}", "{nvidia.com/gpu: 4, memory: 64Gi}")), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of NodePool gpu by a machine (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.limits}{"\n"}{.status.resources}{"\n"}'
  kubectl patch nodepool gpu --type merge -p '{"spec":{"limits":{"memory":"128Gi"}}}'
`},
		"nodes": {outside.RaiseLimit, pools(other("{nvidia.com/gpu: 8, nodes: 2}", "{nvidia.com/gpu: 4, nodes: 2}")), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of NodePool gpu by a machine (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.limits}{"\n"}{.status.resources}{"\n"}'
  kubectl patch nodepool gpu --type merge -p '{"spec":{"limits":{"nodes":"3"}}}'
`},
		"no limit of GPUs": {outside.RaiseLimit, pools(other("{memory: 64Gi, cpu: 8}", "{memory: 1Gi, cpu: 6}")), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of NodePool gpu by a machine (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.limits}{"\n"}{.status.resources}{"\n"}'
  kubectl patch nodepool gpu --type merge -p '{"spec":{"limits":{"cpu":"16","memory":"128Gi"}}}'
`},
		"its only limit": {outside.RaiseLimit, pools(other("{nodes: 3}", "{nodes: 2}")), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of NodePool gpu by a machine (the node is not there yet)
  kubectl get nodepool gpu -o jsonpath='{.spec.limits}{"\n"}{.status.resources}{"\n"}'
  kubectl patch nodepool gpu --type merge -p '{"spec":{"limits":{"nodes":"6"}}}'
`},
		"a pool that is not read": {outside.RaiseLimit, pools(), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the limits of the NodePool (the node is not there yet)
  kubectl get nodepools -o custom-columns=NAME:.metadata.name,LIMITS:.spec.limits,USED:.status.resources
  # then kubectl edit nodepool NAME: spec.limits
`},
		"the autoscaler's own quota": {outside.RaiseLimit, autoscaler("NotTriggerScaleUp", down+`1 exceeded quota: "gpus", resources: nvidia.com/gpu`), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the cluster autoscaler's own limits (--gpu-total, --cores-total, --memory-total, or its CapacityQuota) (the node is not there yet)
  kubectl -n kube-system get deployment -l app.kubernetes.io/name=cluster-autoscaler -o yaml | grep -- -total
  kubectl get capacityquotas.autoscaling.x-k8s.io
`},
		"the autoscaler's, before that": {outside.RaiseLimit, autoscaler("NotTriggerScaleUp", down+"1 max cluster cpu limit reached"), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the cluster autoscaler's own limits (--gpu-total, --cores-total, --memory-total, or its CapacityQuota) (the node is not there yet)
  kubectl -n kube-system get deployment -l app.kubernetes.io/name=cluster-autoscaler -o yaml | grep -- -total
  kubectl get capacityquotas.autoscaling.x-k8s.io
`},
		"the autoscaler's nodes": {outside.RaiseLimit, autoscaler("NotTriggerScaleUp", down+"max total nodes in cluster reached"), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the cluster autoscaler's --max-nodes-total (the node is not there yet)
  kubectl -n kube-system get deployment -l app.kubernetes.io/name=cluster-autoscaler -o yaml | grep -- max-nodes-total
`},
		"a group nobody knows": {outside.RaiseLimit, autoscaler("NotTriggerScaleUp", down+"1 max node group size reached"), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the largest size of the node group (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  # then raise the largest size of GROUP to MORE with the cloud's own command
`},
		"a group of EKS": {outside.RaiseLimit, full("eks-gpu-1", "2"), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the largest size of the node group eks-gpu-1 (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  aws autoscaling update-auto-scaling-group --auto-scaling-group-name eks-gpu-1 --max-size 3
  # of eksctl: eksctl scale nodegroup --cluster CLUSTER --name NODEGROUP --nodes-max 3
`},
		"a group of AWS, by its node": {outside.RaiseLimit, on("aws:///z/i-1", "eks.amazonaws.com/nodegroup: gpu", full("eks-gpu-1", "2")), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the largest size of the node group eks-gpu-1 (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  aws autoscaling update-auto-scaling-group --auto-scaling-group-name eks-gpu-1 --max-size 3
  # of eksctl: eksctl scale nodegroup --cluster CLUSTER --name gpu --nodes-max 3
`},
		"a group of Azure's, by a node": {outside.RaiseLimit, on("azure:///subscriptions/s/n1", "", full("gpu-grp", "2")), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the largest size of the node group gpu-grp (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name gpu-grp --update-cluster-autoscaler --min-count 1 --max-count 3
`},
		"a group of Google's, by a node": {outside.RaiseLimit, on("gce://p/z/n1", "cloud.google.com/gke-nodepool: gpu", full("gke-gpu-grp", "2")), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the largest size of the node group gke-gpu-grp (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  gcloud container clusters update CLUSTER --enable-autoscaling --node-pool gpu --max-nodes 3
`},
		"a group of Azure's": {outside.RaiseLimit, full("aks-gpu-vmss", "2"), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the largest size of the node group aks-gpu-vmss (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name aks-gpu-vmss --update-cluster-autoscaler --min-count 1 --max-count 3
`},
		"a group of another cloud": {outside.RaiseLimit, on("kind://k/n1", "", full("workers", "2")), `ScaleNodePool for "AutoscalerLimit", 0 min, by hand, low risk: raise the largest size of the node group workers (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  # then raise the largest size of workers to 3 with the cloud's own command
`},
	})
}

// An autoscaler that knows no machine for the pod is told of one, where it would look for it.
func TestAutoscalersAreTold(t *testing.T) {
	notReady := func(class string) func(*edittest.World) {
		return func(w *edittest.World) {
			add(t, &w.NodePools, `{metadata: {name: gpu}, spec: {limits: {nvidia.com/gpu: 8}, template: {spec: {nodeClassRef: {kind: EC2NodeClass, name: c}}}}, status: {conditions: [{type: Ready, status: "False", reason: NotNow}]}}`)
			if class != "" {
				add(t, &w.NodeClasses.AWS, `{metadata: {name: c}, status: {conditions: [{type: Ready, status: "`+class+`"}]}}`)
			}
		}
	}
	lacks := func(fills ...func(*edittest.World)) func(*edittest.World) {
		return func(w *edittest.World) {
			w.Asking(rcatest.List("nvidia.com/mig-1g.5gb", "2"))
			for _, fill := range fills {
				fill(w)
			}
		}
	}
	label := func(fill func(*edittest.World)) func(*edittest.World) {
		return func(w *edittest.World) {
			w.Wait.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": "x"}
			fill(w)
		}
	}
	const tooFew, selector = "no instance type has enough resources", "1 node(s) didn't match Pod's node affinity/selector"
	words := func(message string, pools ...string) func(*edittest.World) {
		return func(w *edittest.World) {
			for _, p := range pools {
				add(t, &w.NodePools, p)
			}
			says(w, "karpenter", "FailedScheduling", message, 0)
		}
	}
	open := strings.Replace(pool, "nvidia.com/gpu: 8}, template", "nvidia.com/gpu: 80}, template", 1)
	atZero := group("eks-gpu-1", "cloudProviderTarget: 0, maxSize: 3", "")
	run(t, map[string]row{
		"the volume decides": {outside.GrowPool, autoscaler("NotTriggerScaleUp", down+"1 node(s) had volume node affinity conflict"), ""},
		"a pool that is not Ready": {outside.GrowPool, notReady("True"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: mend NodePool gpu, or the node class that it names: it is not Ready (the node is not there yet)
  kubectl describe nodepool gpu
  kubectl describe ec2nodeclass c
  kubectl get nodepool gpu -w
`},
		"a class that nobody read": {outside.GrowPool, notReady(""), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: mend NodePool gpu, or the node class that it names: it is not Ready (the node is not there yet)
  kubectl describe nodepool gpu
  kubectl describe ec2nodeclass c
  kubectl get nodepool gpu -w
`},
		"its class is not Ready": {outside.GrowPool, notReady("False"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: mend EC2NodeClass c, which NodePool gpu makes its machines by: it is not Ready (the node is not there yet)
  kubectl describe ec2nodeclass c
  kubectl edit ec2nodeclass c
  kubectl get nodepool gpu -w
`},
		"its class says why": {outside.GrowPool, notReady(`False", reason: "Broken`), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: mend EC2NodeClass c, which NodePool gpu makes its machines by: Ready=False Broken (the node is not there yet)
  kubectl describe ec2nodeclass c
  kubectl edit ec2nodeclass c
  kubectl get nodepool gpu -w
`},
		"it does not run": {outside.GrowPool, func(w *edittest.World) {
			groups(w, atZero)
			w.ConfigMaps[0].Annotations["cluster-autoscaler.kubernetes.io/last-updated"] = rcatest.Noon.Add(-time.Hour).Format(time.RFC3339)
		}, `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: start the cluster autoscaler (the node is not there yet)
  kubectl -n kube-system get deployments,pods -l app.kubernetes.io/name=cluster-autoscaler
  kubectl -n kube-system describe pods -l app.kubernetes.io/name=cluster-autoscaler
`},
		"its nodes are not ready": {outside.GrowPool, autoscaler("NotTriggerScaleUp", down+"1 not ready for scale-up"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: let a node pool with such GPUs grow, or add one (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml  # nodeGroups: which it knows
  # else add a node group whose machines the pod fits, with the cloud's own command
`},
		"a label that nodes will have": {outside.GrowPool, label(autoscaler("NotTriggerScaleUp", down+selector)), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: tell the cluster autoscaler of label nvidia.com/gpu.product on the node group's template, or keep one node of it (the node is not there yet)
  aws autoscaling create-or-update-tags --tags ResourceId=GROUP,ResourceType=auto-scaling-group,Key=k8s.io/cluster-autoscaler/node-template/label/nvidia.com/gpu.product,Value=x,PropagateAtLaunch=true
`},
		"instances, to Karpenter": {outside.GrowPool, lacks(words(tooFew)), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: tell Karpenter by a NodeOverlay which machines offer nvidia.com/mig-1g.5gb, or ask for nvidia.com/gpu (the node is not there yet)
  echo '{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: nvidia-com-mig-1g-5gb}, spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [POOL]}], capacity: {nvidia.com/mig-1g.5gb: 2}}}' | kubectl apply -f -  # capacity: as many as a machine offers once it is laid out
`},
		"instances, of the only NodePool": {outside.GrowPool, lacks(words(tooFew, open)), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: tell Karpenter by a NodeOverlay which machines offer nvidia.com/mig-1g.5gb, or ask for nvidia.com/gpu (the node is not there yet)
  echo '{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: nvidia-com-mig-1g-5gb}, spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [gpu]}], capacity: {nvidia.com/mig-1g.5gb: 2}}}' | kubectl apply -f -  # capacity: as many as a machine offers once it is laid out
`},
		"instances, to the autoscaler": {outside.GrowPool, lacks(autoscaler("NotTriggerScaleUp", down+"1 Insufficient nvidia.com/mig-1g.5gb")), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: tell the cluster autoscaler that nodes of the group offer nvidia.com/mig-1g.5gb, or keep one node of it (the node is not there yet)
  aws autoscaling create-or-update-tags --tags ResourceId=GROUP,ResourceType=auto-scaling-group,Key=k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/mig-1g.5gb,Value=2,PropagateAtLaunch=true
`},
		"GPUs, of a group at zero": {outside.GrowPool, func(w *edittest.World) {
			autoscaler("NotTriggerScaleUp", down+"1 Insufficient nvidia.com/gpu", atZero)(w)
			add(t, &w.Deployments, "{metadata: {namespace: ops, name: aws-cluster-autoscaler}}")
		}, `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: scale node group eks-gpu-1 to one machine by hand: the cluster autoscaler then sees that it has nvidia.com/gpu (the node is not there yet)
  aws autoscaling set-desired-capacity --auto-scaling-group-name eks-gpu-1 --desired-capacity 1  # of a group with a node the autoscaler knows what that has
  kubectl -n a get pod w -w
  kubectl -n ops rollout restart deployment aws-cluster-autoscaler  # it forgets the group's last node, which it goes by before any tag
  aws autoscaling create-or-update-tags --tags ResourceId=eks-gpu-1,ResourceType=auto-scaling-group,Key=k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu,Value=1,PropagateAtLaunch=true
`},
		"GPUs, where no tag tells": {outside.GrowPool, autoscaler("NotTriggerScaleUp", down+"1 Insufficient nvidia.com/gpu", strings.Replace(atZero, "eks-gpu-1", "aks-gpu-123-vmss", 1)), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: scale node group aks-gpu-123-vmss to one machine by hand: the cluster autoscaler then sees that it has nvidia.com/gpu (the node is not there yet)
  az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name gpu --update-cluster-autoscaler --min-count 1 --max-count 3  # of a group with a node the autoscaler knows what that has
  kubectl -n a get pod w -w
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml
  # this cloud's node groups have no such tag: set the group's smallest size to 1, and its nodes tell
`},
		"no instance type": {outside.GrowPool, words("no instance type met all requirements"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: let a NodePool take machines that the pod fits, or add one (the node is not there yet)
  kubectl get nodepools -o yaml
  # then kubectl edit nodepool NAME: spec.template.spec.requirements (instance types, zones, capacity types)
`},
		"no machine is large enough, of pools that nobody read": {outside.GrowPool, words(tooFew), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: let a NodePool take machines that the pod fits, or add one (the node is not there yet)
  kubectl get nodepools -o yaml
  # then kubectl edit nodepool NAME: spec.template.spec.requirements (instance types, zones, capacity types)
`},
		"a group that it does not know": {outside.GrowPool, func(w *edittest.World) {
			autoscaler("NotTriggerScaleUp", down+"1 something", strings.Replace(atZero, "maxSize: 3", "maxSize: 0", 1))(w)
			w.AddNode(sim.Node{Name: "m"}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Spec.ProviderID = "aws:///us-east-2a/i-1" })
		}, `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: let a node pool with such GPUs grow, or add one (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml  # nodeGroups: which it knows; as of its last round eks-gpu-1
  aws autoscaling create-or-update-tags --tags ResourceId=GROUP,ResourceType=auto-scaling-group,PropagateAtLaunch=true,Key=k8s.io/cluster-autoscaler/enabled,Value=true ResourceId=GROUP,ResourceType=auto-scaling-group,PropagateAtLaunch=true,Key=k8s.io/cluster-autoscaler/CLUSTER,Value=owned  # where a group with such machines is there and not among them: it finds groups by these tags
  # else add a node group whose machines the pod fits, with the cloud's own command
`},
		"another reason": {outside.GrowPool, autoscaler("NotTriggerScaleUp", down+"1 something"), `ScaleNodePool for "AutoscalerCannotHelp", 0 min, by hand, low risk: let a node pool with such GPUs grow, or add one (the node is not there yet)
  kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml  # nodeGroups: which it knows
  # else add a node group whose machines the pod fits, with the cloud's own command
`},
	})
}

// A selector or taint that keeps the pod from all that pools make is corrected on either side.
func TestPodAndTemplateAgree(t *testing.T) {
	of := func(id string) func(*edit.Workload) []edit.Change {
		return func(c *edit.Workload) []edit.Change { return outside.OfTemplate(c, diagnosis.CauseID(id)) }
	}
	selector := func(pools int) func(*edittest.World) {
		return func(w *edittest.World) {
			for i := range pools {
				add(t, &w.NodePools, strings.Replace(pool, "name: gpu", fmt.Sprintf("name: gpu%d", i), 1))
			}
			says(w, "karpenter", "FailedScheduling", "incompatible requirements, label x", 0)
		}
	}
	run(t, map[string]row{
		"the selector, one NodePool": {of("NodeSelectorMismatch"), selector(1), `FixSelector for "NodeSelectorMismatch", 0 min, by hand, low risk: ask by labels that a node pool has in deployment/w (no node is there for which it could be tried)
  kubectl get nodepools -o yaml  # labels, requirements and taints in spec.template
  kubectl -n a get pod w -o jsonpath='{.spec.nodeSelector}{.spec.affinity.nodeAffinity}{.spec.tolerations}'
  kubectl -n a edit deployment/w  # node selector and affinity as a pool has them
  # or let the pool agree: kubectl edit nodepool gpu0  # spec.template.metadata.labels, or spec.template.spec.requirements
`},
		"the selector, two NodePools": {of("NodeSelectorMismatch"), selector(2), `FixSelector for "NodeSelectorMismatch", 0 min, by hand, low risk: ask by labels that a node pool has in deployment/w (no node is there for which it could be tried)
  kubectl get nodepools -o yaml  # labels, requirements and taints in spec.template
  kubectl -n a get pod w -o jsonpath='{.spec.nodeSelector}{.spec.affinity.nodeAffinity}{.spec.tolerations}'
  kubectl -n a edit deployment/w  # node selector and affinity as a pool has them
  # or let the pool agree: kubectl edit nodepool NAME  # spec.template.metadata.labels, or spec.template.spec.requirements
`},
		"the taint of a group's nodes": {of("UntoleratedTaint"), autoscaler("NotTriggerScaleUp", down+"1 node(s) had untolerated taint {a: b}"), `AddToleration for "UntoleratedTaint", 0 min, by hand, low risk: tolerate the node pool's taint with {key: a, operator: Equal, value: "b"} in deployment/w (no node is there for which it could be tried)
  kubectl get nodes --show-labels  # and the labels and taints of each node group
  kubectl -n a get pod w -o jsonpath='{.spec.nodeSelector}{.spec.affinity.nodeAffinity}{.spec.tolerations}'
  kubectl -n a edit deployment/w  # tolerations: one more, {key: a, operator: Equal, value: "b"}
  # or let the node group agree, with the cloud's own command
  # or, if the group has lost that taint since: scale it to one node by hand, for of a group at zero the autoscaler knows its last node
`},
		"another cause": {of("GPUsInUse"), selector(1), ""},
	})
}
