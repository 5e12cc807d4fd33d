package causes

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/rcatest"
)

// lacks adds a ReplicaSet "w" that wants two pods and has none, as the API server said.
func (w *world) lacks(says string, requests, limits corev1.ResourceList) *appsv1.ReplicaSet {
	two := int32(2)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w", UID: "rs"}, Spec: appsv1.ReplicaSetSpec{Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "w"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}}}}}
	rs.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: says, LastTransitionTime: metav1.Time{Time: rcatest.Noon.Add(-time.Hour)}}}
	w.ReplicaSets = append(w.ReplicaSets, rs)
	return rs
}

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func (w *world) quota(namespace, name string, hard, used corev1.ResourceList) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
	w.Quotas = append(w.Quotas, q)
	return q
}

func (w *world) limits(namespace string, items ...corev1.LimitRangeItem) {
	w.LimitRanges = append(w.LimitRanges, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bounds"}, Spec: corev1.LimitRangeSpec{Limits: items}})
}

// What the API server refuses by a quota.
func TestQuotas(t *testing.T) {
	const gpus = "requests.nvidia.com/gpu"
	one := list("nvidia.com/gpu", "1")
	rows{
		"used up, and who holds most": {func(w *world) {
			w.quota("ml", "team", list(gpus, "8"), list(gpus, "8"))
			w.quota("other", "theirs", list(gpus, "0"), list(gpus, "0"))
			w.quota("ml", "roomy", list(gpus, "9"), list(gpus, "8"))
			w.quota("ml", "of cpu", list("requests.cpu", "0"), list("requests.cpu", "0"))
			for name, n := range map[string]int64{"a": 1, "b": 3, "c": 2, "d": 1, "e": 1} {
				w.pod(name, "n1", "nvidia.com/gpu", n)
			}
			w.pod("cpu", "n1", "", 0)
			w.pod("theirs", "n1", "nvidia.com/gpu", 9, of("other"))
			w.lacks("exceeded quota: team", one, one)
		}, `
QuotaExceeded proven : quota team refuses it: 8 of 8 requests.nvidia.com/gpu used, 1 asked, held by b (3), c (2), a (1) and 2 more
  ResourceQuota/ml/team: requests.nvidia.com/gpu: 8 used of 8, one pod asks 1
  Pod/ml/b: holds 3 of requests.nvidia.com/gpu
  Pod/ml/c: holds 2 of requests.nvidia.com/gpu
  Pod/ml/a: holds 1 of requests.nvidia.com/gpu
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: exceeded quota: team
QuotaDemandsRequests proven : quota of cpu takes only pods whose containers state what it limits: its containers must specify requests.cpu for: main; nothing is used up by that
  ResourceQuota/ml/of cpu: limits requests.cpu to 0 (0 used): container main states none
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: exceeded quota: team
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"no scheduler can have spoken of what does not exist": {func(w *world) {
			w.quota("ml", "team", list(gpus, "1"), list(gpus, "1"))
			w.lacks("exceeded quota: team", one, one).Spec.Template.Spec.SchedulerName = "mine"
		}, `
QuotaExceeded proven : quota team refuses it: 1 of 1 requests.nvidia.com/gpu used, 1 asked
  ResourceQuota/ml/team: requests.nvidia.com/gpu: 1 used of 1, one pod asks 1
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: exceeded quota: team
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"what it does not say is counted": {func(w *world) {
			w.quota("ml", "team", list(gpus, "1"), nil)
			w.pod("a", "n1", "nvidia.com/gpu", 1)
			w.lacks("exceeded quota: team", one, one)
		}, `
QuotaExceeded likely : quota team refuses it: 1 of 1 requests.nvidia.com/gpu used, 1 asked, held by a (1)
  ResourceQuota/ml/team: requests.nvidia.com/gpu: 1 used of 1, one pod asks 1 (counted from its pods: its status does not say)
  Pod/ml/a: holds 1 of requests.nvidia.com/gpu
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: exceeded quota: team
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"one written by hand, two things short": {func(w *world) {
			w.quota("ml", "team", list(gpus, "1", "pods", "0"), nil).Status = corev1.ResourceQuotaStatus{}
			w.pod("a", "n1", "nvidia.com/gpu", 1)
			w.lacks("", one, one)
		}, `
QuotaExceeded likely : quota team refuses it: 1 of 0 pods used, 1 asked; 1 of 1 requests.nvidia.com/gpu used, 1 asked, held by a (1)
  ResourceQuota/ml/team: pods: 1 used of 0, one pod asks 1 (counted from its pods: its status does not say)
  Pod/ml/a: holds 1 of pods
  ResourceQuota/ml/team: requests.nvidia.com/gpu: 1 used of 1, one pod asks 1 (counted from its pods: its status does not say)
  Pod/ml/a: holds 1 of requests.nvidia.com/gpu
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"exactly enough is enough": {func(w *world) {
			w.quota("ml", "team", list(gpus, "2"), list(gpus, "1"))
			w.lacks("exceeded quota: team", one, one)
		}, `
NoNodes proven : the cluster has no node
  Node: the list is empty
Unknown possible : a quota refused it; by their own figures all quotas of ml would take it now, and its controller has not tried again (its back-off reaches minutes); it said: exceeded quota: team
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: exceeded quota: team
`},
		"it wants what the pod does not state": {func(w *world) {
			w.quota("ml", "team", list("requests.memory", "1Gi", "limits.cpu", "9"), list("requests.memory", "0", "limits.cpu", "0"))
			w.lacks("failed quota: team: must specify", one, one)
		}, `
QuotaDemandsRequests proven : quota team takes only pods whose containers state what it limits: its containers must specify limits.cpu for: main; requests.memory for: main; nothing is used up by that
  ResourceQuota/ml/team: limits limits.cpu to 9 (0 used): container main states none
  ResourceQuota/ml/team: limits requests.memory to 1Gi (0 used): container main states none
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: failed quota: team: must specify
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"the API server wants one to exist": {func(w *world) { w.lacks(`insufficient quota to match these scopes`, one, one) }, `
QuotaDemandsRequests likely : the API server takes such pods only in a namespace with a quota that covers them, and ml has none: insufficient quota to match these scopes
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: insufficient quota to match these scopes
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"quotas that were not read": {func(w *world) {
			w.Unread["ResourceQuota"] = "forbidden"
			w.lacks("exceeded quota: team, requested: x", one, one)
		}, `
QuotaExceeded possible : the API server said: exceeded quota: team, requested: x
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: exceeded quota: team, requested: x
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"a refusal that no object explains": {func(w *world) { w.lacks("admission webhook denied it", one, one) }, `
NoNodes proven : the cluster has no node
  Node: the list is empty
Unknown possible : an admission webhook denies it: a policy of the cluster, no shortage; it said: admission webhook denied it
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: admission webhook denied it
`},
		"a refusal without words": {func(w *world) { w.lacks("", one, one) }, `
NoNodes proven : the cluster has no node
  Node: the list is empty
Unknown possible : its pods are not made, and nothing that was read says why; ruled out: quotas, LimitRanges, requests and limits of devices
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist
`},
		"what refuses the next keeps those that exist from nothing": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.quota("ml", "team", list(gpus, "1"), list(gpus, "1"))
			rs := w.lacks("exceeded quota: team", one, one)
			rs.Status.Replicas = 1
			yes := true
			w.pod("a", "n1", "nvidia.com/gpu", 1)
			w.pod("first", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				p.Labels, p.OwnerReferences = map[string]string{"app": "w"}, []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "w", UID: "rs", Controller: &yes}}
				delete(p.Spec.Containers[0].Resources.Requests, "cpu")
			})
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
QuotaExceeded proven : quota team refuses it: 1 of 1 requests.nvidia.com/gpu used, 1 asked, held by a (1), first (1)
  ResourceQuota/ml/team: requests.nvidia.com/gpu: 1 used of 1, one pod asks 1
  Pod/ml/a: holds 1 of requests.nvidia.com/gpu
  Pod/ml/first: holds 1 of requests.nvidia.com/gpu
  ReplicaSet/ml/w: wants 2 pods, 1 of them does not exist; its last refusal: exceeded quota: team
`},
	}.run(t)
}

// What the API server refuses by a LimitRange, or by itself.
func TestBounds(t *testing.T) {
	item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer}
	rows{
		"less than the least, and more than the most": {func(w *world) {
			item := item
			item.Min, item.Max = list("cpu", "2", "memory", "1Gi"), list("cpu", "4", "nvidia.com/gpu", "1", "memory", "2Gi")
			w.limits("ml", item)
			w.limits("other", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "0")})
			w.lacks("denied", list("cpu", "1", "memory", "1Gi", "nvidia.com/gpu", "2"), list("cpu", "8", "memory", "1Gi", "nvidia.com/gpu", "2"))
		}, `
LimitRangeViolated proven : LimitRange bounds refuses it: container main requests 1 cpu, the least is 2; LimitRange bounds refuses it: container main is limited to 8 cpu, the most is 4; LimitRange bounds refuses it: container main is limited to 2 nvidia.com/gpu, the most is 1
  LimitRange/ml/bounds: container main requests 1 cpu, the least is 2
  LimitRange/ml/bounds: container main is limited to 8 cpu, the most is 4
  LimitRange/ml/bounds: container main is limited to 2 nvidia.com/gpu, the most is 1
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: denied
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"of a whole pod": {func(w *world) {
			w.limits("ml", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: list("memory", "1Gi"), Max: list("cpu", "4"), MaxLimitRequestRatio: list("cpu", "2")})
			w.lacks("denied", list("cpu", "1"), list("nvidia.com/gpu", "1", "cpu", "4"))
		}, `
LimitRangeViolated proven : LimitRange bounds refuses it: the pod requests no memory, the least is 1Gi; LimitRange bounds refuses it: the pod requests 1 cpu under a limit of 4, the limit may be 2 times the request
  LimitRange/ml/bounds: the pod requests no memory, the least is 1Gi
  LimitRange/ml/bounds: the pod requests 1 cpu under a limit of 4, the limit may be 2 times the request
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: denied
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"bounds that were not read": {func(w *world) {
			w.Unread["LimitRange"] = "forbidden"
			w.lacks("maximum nvidia.com/gpu usage per Container is 1, but limit is 2", list("nvidia.com/gpu", "2"), list("nvidia.com/gpu", "2"))
		}, `
LimitRangeViolated possible : the API server said: maximum nvidia.com/gpu usage per Container is 1, but limit is 2
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: maximum nvidia.com/gpu usage per Container is 1, but limit is 2
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"requests and limits of a device that differ": {func(w *world) { w.lacks("Invalid value", list("nvidia.com/gpu", "1"), list("nvidia.com/gpu", "2")) }, `
InvalidGPURequest proven : container main requests 1 nvidia.com/gpu and is limited to 2: they must be equal
  ReplicaSet/ml/w: its pods: container main requests 1 nvidia.com/gpu and is limited to 2: they must be equal
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: Invalid value
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"a device without a limit, by the default of a LimitRange": {func(w *world) {
			item, pods := item, item
			item.DefaultRequest, pods.Min, pods.Type = list("nvidia.com/gpu", "1"), list("nvidia.com/gpu", "1"), corev1.LimitTypePod
			w.limits("ml", item)
			w.limits("other", item)
			w.limits("ml", pods)
			w.lacks("Limit must be set for non overcommitable resources", list("cpu", "1"), list("cpu", "1"))
		}, `
InvalidGPURequest proven : container main requests 1 nvidia.com/gpu and has no limit of it
  ReplicaSet/ml/w: its pods: container main requests 1 nvidia.com/gpu and has no limit of it
  LimitRange/ml/bounds: makes 1 nvidia.com/gpu the default request
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: Limit must be set for non overcommitable resources
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"a device without a limit, by the least of one": {func(w *world) {
			item := item
			item.Min = list("nvidia.com/gpu", "1")
			w.limits("ml", item)
			w.lacks("Limit must be set for non overcommitable resources", list("cpu", "1"), list("cpu", "1"))
		}, `
InvalidGPURequest proven : container main requests 1 nvidia.com/gpu and has no limit of it
  ReplicaSet/ml/w: its pods: container main requests 1 nvidia.com/gpu and has no limit of it
  LimitRange/ml/bounds: makes 1 nvidia.com/gpu the default request
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: Limit must be set for non overcommitable resources
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"a device without a limit of its own accord": {func(w *world) {
			item := item
			item.DefaultRequest = list("nvidia.com/gpu", "1")
			w.limits("ml", item)
			w.lacks("Limit must be set for non overcommitable resources", list("nvidia.com/gpu", "2"), nil)
		}, `
InvalidGPURequest proven : container main requests 2 nvidia.com/gpu and has no limit of it
  ReplicaSet/ml/w: its pods: container main requests 2 nvidia.com/gpu and has no limit of it
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: Limit must be set for non overcommitable resources
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"part of a device": {func(w *world) {
			w.lacks("must be an integer", nil, list("nvidia.com/gpu", "500m", "memory", "1500m", "kubernetes.io/x", "500m"))
		}, `
InvalidGPURequest proven : container main asks for 500m nvidia.com/gpu, and a device cannot be cut
  ReplicaSet/ml/w: its pods: container main asks for 500m nvidia.com/gpu, and a device cannot be cut
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: must be an integer
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"something changes it on the way": {func(w *world) {
			w.lacks("Limit must be set for non overcommitable resources", list("nvidia.com/gpu", "1"), list("nvidia.com/gpu", "1"))
		}, `
InvalidGPURequest possible : something changes its pods, and the API server said: Limit must be set for non overcommitable resources
  ReplicaSet/ml/w: wants 2 pods, 2 of them do not exist; its last refusal: Limit must be set for non overcommitable resources
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"none was asked": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				zero := corev1.Container{Name: "side", Resources: corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", "0", "example.com/a", "0", "cpu", "0")}}
				p.Spec.Containers = append(p.Spec.Containers, zero, zero)
			})
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
InvalidGPURequest proven : zero was asked of example.com/a, nvidia.com/gpu: the pod would run without
  Pod/ml/w: limits: 0 of example.com/a, nvidia.com/gpu
`},
	}.run(t)
}

// What the kubelet refuses.
func TestKubeletRefusals(t *testing.T) {
	refused := func(reason, message string) func(*world) {
		return func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("w", "n1", "nvidia.com/gpu.shared", 2).Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message}
		}
	}
	rows{
		"NUMA": {refused("TopologyAffinityError", "Resources cannot be allocated with Topology locality"), `
SharedResourceRenamed proven n1: offers nvidia.com/gpu, not nvidia.com/gpu.shared
  Node/n1: advertises nvidia.com/gpu=1
TopologyAlignmentRefused proven : the kubelet of n1 could not align its devices and CPUs on one NUMA node; it said: Resources cannot be allocated with Topology locality
  Pod/ml/w: TopologyAffinityError: Resources cannot be allocated with Topology locality
  Node/n1: nvidia.com/gpu.shared: capacity 0, allocatable 0, 0 free by the requests of its pods
  Node/n1: Ready since 2026-11-20 11:00:00 UTC
  Node/n1: cpu: allocatable 96, 96 free by the requests of its pods
`},
		"two shares": {refused("UnexpectedAdmissionError", "Allocate failed: request for 2 too large: maximum request size for shared resources is 1"), `
SharedResourceRenamed proven n1: offers nvidia.com/gpu, not nvidia.com/gpu.shared
  Node/n1: advertises nvidia.com/gpu=1
SharedRequestTooLarge proven : more than one share of a GPU was asked for, the device plugin gives one
  Pod/ml/w: UnexpectedAdmissionError: Allocate failed: request for 2 too large: maximum request size for shared resources is 1
`},
		"two shares, old": {refused("UnexpectedAdmissionError", "Allocate failed: 2 too large: maximum request size is 1"), `
SharedResourceRenamed proven n1: offers nvidia.com/gpu, not nvidia.com/gpu.shared
  Node/n1: advertises nvidia.com/gpu=1
SharedRequestTooLarge proven : more than one share of a GPU was asked for, the device plugin gives one
  Pod/ml/w: UnexpectedAdmissionError: Allocate failed: 2 too large: maximum request size is 1
`},
		"two shares, else": {refused("OutOfnvidia.com/gpu", "Pod was rejected: too large: maximum request size for shared resources is 1"), `
SharedResourceRenamed proven n1: offers nvidia.com/gpu, not nvidia.com/gpu.shared
  Node/n1: advertises nvidia.com/gpu=1
KubeletAdmissionRefused proven : the kubelet refused it at admission: OutOfnvidia.com/gpu on n1: by the kubelet's own count the node was full (now 1 of 1 nvidia.com/gpu are free); it said: too large: maximum request size for shared resources is 1
  Pod/ml/w: OutOfnvidia.com/gpu: Pod was rejected: too large: maximum request size for shared resources is 1
  Node/n1: nvidia.com/gpu.shared: capacity 0, allocatable 0, 0 free by the requests of its pods
  Node/n1: nvidia.com/gpu: allocatable 1, 1 free by the requests of its pods
  Node/n1: Ready since 2026-11-20 11:00:00 UTC
`},
		"anything else": {refused("UnexpectedAdmissionError", "Allocate failed: no healthy devices"), `
SharedResourceRenamed proven n1: offers nvidia.com/gpu, not nvidia.com/gpu.shared
  Node/n1: advertises nvidia.com/gpu=1
KubeletAdmissionRefused proven : the kubelet refused it at admission: UnexpectedAdmissionError on n1; it said: Allocate failed: no healthy devices
  Pod/ml/w: UnexpectedAdmissionError: Allocate failed: no healthy devices
  Node/n1: nvidia.com/gpu.shared: capacity 0, allocatable 0, 0 free by the requests of its pods
  Node/n1: Ready since 2026-11-20 11:00:00 UTC
`},
	}.run(t)
}
