package causes

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
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
		}, ``},
		"what it does not say is counted": {func(w *world) {
			w.quota("ml", "team", list(gpus, "1"), nil)
			w.pod("a", "n1", "nvidia.com/gpu", 1)
			w.lacks("exceeded quota: team", one, one)
		}, ``},
		"one written by hand, two things short": {func(w *world) {
			w.quota("ml", "team", list(gpus, "1", "pods", "0"), nil).Status = corev1.ResourceQuotaStatus{}
			w.pod("a", "n1", "nvidia.com/gpu", 1)
			w.lacks("", one, one)
		}, ``},
		"exactly enough is enough": {func(w *world) {
			w.quota("ml", "team", list(gpus, "2"), list(gpus, "1"))
			w.lacks("exceeded quota: team", one, one)
		}, ``},
		"it wants what the pod does not state": {func(w *world) {
			w.quota("ml", "team", list("requests.memory", "1Gi", "limits.cpu", "9"), list("requests.memory", "0", "limits.cpu", "0"))
			w.lacks("failed quota: team: must specify", one, one)
		}, ``},
		"the API server wants one to exist": {func(w *world) { w.lacks(`insufficient quota to match these scopes`, one, one) }, ``},
		"quotas that were not read": {func(w *world) {
			w.Unread["ResourceQuota"] = "forbidden"
			w.lacks("exceeded quota: team, requested: x", one, one)
		}, ``},
		"a refusal that no object explains": {func(w *world) { w.lacks("admission webhook denied it", one, one) }, ``},
		"a refusal without words":           {func(w *world) { w.lacks("", one, one) }, ``},
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
		}, ``},
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
		}, ``},
		"of a whole pod": {func(w *world) {
			w.limits("ml", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: list("memory", "1Gi"), Max: list("cpu", "4"), MaxLimitRequestRatio: list("cpu", "2")})
			w.lacks("denied", list("cpu", "1"), list("nvidia.com/gpu", "1", "cpu", "4"))
		}, ``},
		"bounds that were not read": {func(w *world) {
			w.Unread["LimitRange"] = "forbidden"
			w.lacks("maximum nvidia.com/gpu usage per Container is 1, but limit is 2", list("nvidia.com/gpu", "2"), list("nvidia.com/gpu", "2"))
		}, ``},
		"requests and limits of a device that differ": {func(w *world) { w.lacks("Invalid value", list("nvidia.com/gpu", "1"), list("nvidia.com/gpu", "2")) }, ``},
		"a device without a limit, by the default of a LimitRange": {func(w *world) {
			item, pods := item, item
			item.DefaultRequest, pods.Min, pods.Type = list("nvidia.com/gpu", "1"), list("nvidia.com/gpu", "1"), corev1.LimitTypePod
			w.limits("ml", item)
			w.limits("other", item)
			w.limits("ml", pods)
			w.lacks("Limit must be set for non overcommitable resources", list("cpu", "1"), list("cpu", "1"))
		}, ``},
		"a device without a limit, by the least of one": {func(w *world) {
			item := item
			item.Min = list("nvidia.com/gpu", "1")
			w.limits("ml", item)
			w.lacks("Limit must be set for non overcommitable resources", list("cpu", "1"), list("cpu", "1"))
		}, ``},
		"a device without a limit of its own accord": {func(w *world) {
			item := item
			item.DefaultRequest = list("nvidia.com/gpu", "1")
			w.limits("ml", item)
			w.lacks("Limit must be set for non overcommitable resources", list("nvidia.com/gpu", "2"), nil)
		}, ``},
		"part of a device": {func(w *world) {
			w.lacks("must be an integer", nil, list("nvidia.com/gpu", "500m", "memory", "1500m", "kubernetes.io/x", "500m"))
		}, ``},
		"something changes it on the way": {func(w *world) {
			w.lacks("Limit must be set for non overcommitable resources", list("nvidia.com/gpu", "1"), list("nvidia.com/gpu", "1"))
		}, ``},
		"none was asked": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				zero := corev1.Container{Name: "side", Resources: corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", "0", "example.com/a", "0", "cpu", "0")}}
				p.Spec.Containers = append(p.Spec.Containers, zero, zero)
			})
		}, ``},
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
		"NUMA":             {refused("TopologyAffinityError", "Resources cannot be allocated with Topology locality"), ``},
		"two shares":       {refused("UnexpectedAdmissionError", "Allocate failed: request for 2 too large: maximum request size for shared resources is 1"), ``},
		"two shares, old":  {refused("UnexpectedAdmissionError", "Allocate failed: 2 too large: maximum request size is 1"), ``},
		"two shares, else": {refused("OutOfnvidia.com/gpu", "Pod was rejected: too large: maximum request size for shared resources is 1"), ``},
		"anything else":    {refused("UnexpectedAdmissionError", "Allocate failed: no healthy devices"), ``},
	}.run(t)
}

// A pod that is not there yet has the priority that admission would give it.
func TestPriorityOfTheNextPod(t *testing.T) {
	class := func(name string, value int32, all bool) *schedulingv1.PriorityClass {
		never := corev1.PreemptNever
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: all, PreemptionPolicy: &never}
	}
	all := []*schedulingv1.PriorityClass{class("low", 1, false), class("b", 7, true), class("a", 5, true), class("c", 6, true), class("high", 9, false)}
	for _, c := range []struct {
		named, want string
		value       int32
	}{{"", "a", 5}, {"low", "low", 1}, {"high", "high", 9}} {
		p := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: c.named}}
		withPriority(p, all)
		if p.Spec.PriorityClassName != c.want || p.Spec.Priority == nil || *p.Spec.Priority != c.value || p.Spec.PreemptionPolicy == nil || *p.Spec.PreemptionPolicy != corev1.PreemptNever {
			t.Errorf("%q: %+v, want %s, %d", c.named, p.Spec, c.want, c.value)
		}
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: "gone"}}
	if withPriority(p, all); p.Spec.Priority != nil || p.Spec.PriorityClassName != "gone" {
		t.Errorf("a class that does not exist: %+v", p.Spec)
	}
}

// Only a limit of so many times its request is within a ratio.
func TestRatios(t *testing.T) {
	for _, c := range []struct {
		request, limit, ratio string
		want                  bool
	}{{"1", "2", "2", true}, {"1", "3", "2", false}, {"0", "2", "2", false}, {"1", "0", "2", false}, {"500m", "1", "2", true}} {
		if got := WithinRatio(resource.MustParse(c.request), resource.MustParse(c.limit), resource.MustParse(c.ratio)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
