package incident

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// The labels of a RayCluster's pods, by which KubeRay counts them (ray-operator,
// controllers/ray/common/association.go).
const (
	rayCluster  = "ray.io/cluster"
	rayNodeType = "ray.io/node-type"
	rayGroup    = "ray.io/group"
	rayHead     = "head"
	rayWorker   = "worker"
)

// rayFailures are the roles of the pods that KubeRay could not make, by the reasons of its condition
// ReplicaFailure (1.3 and later, by default) and of its Events (controllers/ray/utils/constant.go).
var rayFailures = map[string]string{
	"FailedCreateHeadPod": rayHead, "FailedCreateWorkerPod": rayWorker,
	"FailedToCreateHeadPod": rayHead, "FailedToCreateWorkerPod": rayWorker,
}

// rayKubeRay is who makes the pods where a RayCluster names somebody: another value has another
// cluster make them.
const rayKubeRay = "ray.io/kuberay-operator"

type raySpec struct {
	Suspend                 *bool  `json:"suspend,omitempty"`
	ManagedBy               string `json:"managedBy,omitempty"`
	EnableInTreeAutoscaling *bool  `json:"enableInTreeAutoscaling,omitempty"`
	AutoscalerOptions       *struct {
		Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	} `json:"autoscalerOptions,omitempty"`
	HeadGroupSpec    rayGroupSpec   `json:"headGroupSpec"`
	WorkerGroupSpecs []rayGroupSpec `json:"workerGroupSpecs,omitempty"`
}

type rayGroupSpec struct {
	GroupName   string                 `json:"groupName,omitempty"`
	Suspend     *bool                  `json:"suspend,omitempty"`
	Replicas    *int32                 `json:"replicas,omitempty"`
	MinReplicas *int32                 `json:"minReplicas,omitempty"`
	MaxReplicas *int32                 `json:"maxReplicas,omitempty"`
	NumOfHosts  int32                  `json:"numOfHosts,omitempty"`
	Template    corev1.PodTemplateSpec `json:"template"`
}

// wants is how many pods a group is to have (controllers/ray/utils/util.go,
// GetWorkerGroupDesiredReplicas), and whether that is what stands in its field replicas.
func (g rayGroupSpec) wants() (n int, stated bool) {
	if ptr.Deref(g.Suspend, false) {
		return 0, false
	}
	least, most := ptr.Deref(g.MinReplicas, 0), ptr.Deref(g.MaxReplicas, math.MaxInt32)
	n = int(min(max(ptr.Deref(g.Replicas, least), least), most) * max(1, g.NumOfHosts))
	return n, g.Replicas != nil && int(*g.Replicas) == n
}

// ofRayCluster reads what a RayCluster's pods would be: first the head, then each group of workers.
// KubeRay makes them itself, in that order, and stops at the first that it cannot make
// (controllers/ray/raycluster_controller.go, reconcilePods).
func ofRayCluster(o *unstructured.Unstructured, h *Held) {
	h.owner = &metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: h.Name, UID: h.UID, Controller: new(true)}
	from, _, err := unstructured.NestedMap(o.Object, "spec")
	var spec raySpec
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(from, &spec) != nil {
		return
	}
	h.makes, h.aside = spec.ManagedBy == "" || spec.ManagedBy == rayKubeRay, ptr.Deref(spec.Suspend, false)
	h.sets = []podSet{{Name: rayHead, Count: 1, Template: spec.HeadGroupSpec.Template, Marks: map[string]string{rayCluster: h.Name, rayNodeType: rayHead}, Role: rayHead, Sole: true, At: "spec.headGroupSpec", Beside: spec.besideHead()}}
	for _, g := range spec.WorkerGroupSpecs {
		set := podSet{Name: g.GroupName, Template: g.Template, Marks: map[string]string{rayCluster: h.Name, rayNodeType: rayWorker, rayGroup: g.GroupName}, Role: rayWorker, At: "spec.workerGroupSpecs[groupName=" + g.GroupName + "]"}
		var stated bool
		if set.Count, stated = g.wants(); set.Count < 1 {
			continue
		}
		if stated {
			set.Stated = "replicas"
		}
		h.sets = append(h.sets, set)
	}
	h.lacks, h.answers = rayFailure(o), true
}

// besideHead is what KubeRay runs beside the head: Ray's autoscaler, where that is on
// (controllers/ray/common/pod.go, BuildAutoscalerContainer).
func (s raySpec) besideHead() []corev1.Container {
	if !ptr.Deref(s.EnableInTreeAutoscaling, false) {
		return nil
	}
	asks := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi")}
	scaler := corev1.Container{Name: "autoscaler", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}}
	if own := s.AutoscalerOptions; own != nil && own.Resources != nil {
		scaler.Resources = *own.Resources
	}
	return []corev1.Container{scaler}
}

// rayFailure is the condition by which KubeRay says that it could not make a pod: its reason, and
// the API server's words in the lines behind it. It takes that back when it has made all. Before 1.3 its status
// has the API server's words alone.
func rayFailure(o *unstructured.Unstructured) *setback {
	from, _, err := unstructured.NestedMap(o.Object, "status")
	var status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		State      string             `json:"state,omitempty"`
		Reason     string             `json:"reason,omitempty"`
		Updated    metav1.Time        `json:"lastUpdateTime"`
	}
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(from, &status) != nil {
		return nil
	}
	for _, c := range status.Conditions {
		if role := rayFailures[c.Reason]; role != "" && c.Type == "ReplicaFailure" && c.Status == metav1.ConditionTrue {
			return &setback{c.LastTransitionTime.Time, strings.TrimPrefix(c.Message, c.Reason+"\n"), role}
		}
	}
	if status.State == "failed" && len(status.Conditions) == 0 { // before 1.3, without a word of whose pod; before 0.4 without any
		if status.Updated.IsZero() {
			status.Updated = o.GetCreationTimestamp()
		}
		return &setback{since: status.Updated.Time, says: status.Reason}
	}
	return nil
}
