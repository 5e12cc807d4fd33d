// Package incidenttest builds the pods, Owners and refusals that tests of incidents and of
// the watcher share. It says nothing of what is right.
package incidenttest

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Start is when all that is made here begins.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Exceeded is how the API server refuses a pod for a quota.
const Exceeded = `Error creating: pods "serve-1-x" is forbidden: Exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4`

// Owners maps "kind/namespace/name" to what owns that object.
type Owners map[string][]metav1.OwnerReference

// Owned is a reference to the controller of an object.
func Owned(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}}
}

// WaitingPod asks for one of a resource.
func WaitingPod(name, resourceName string, owner []metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", OwnerReferences: owner, CreationTimestamp: metav1.NewTime(Start)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse("1")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}},
	}
}

// Find looks an owner up, as a Lookup does.
func (o Owners) Find(kind, namespace, name string) (metav1.Object, bool) {
	refs, ok := o[kind+"/"+namespace+"/"+name]
	return &metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: refs}, ok
}

// Object is the metadata of an object in namespace ml.
func Object(kind, name, version string, owner []metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + kind + "-" + name), ResourceVersion: version, OwnerReferences: owner, CreationTimestamp: metav1.NewTime(Start)}
}

// GPUPods is a template whose pods ask for one GPU.
func GPUPods() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: WaitingPod("", "nvidia.com/gpu", nil).Spec}
}

// ReplicaSet is serve-1 of Deployment serve.
func ReplicaSet(wants, has, ready int32, failing bool) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: Object("ReplicaSet", "serve-1", "50", Owned("Deployment", "serve")), Spec: appsv1.ReplicaSetSpec{Replicas: &wants, Template: GPUPods()},
		Status: appsv1.ReplicaSetStatus{Replicas: has, ReadyReplicas: ready}}
	if failing {
		rs.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: Exceeded, LastTransitionTime: metav1.NewTime(Start.Add(time.Minute))}}
	}
	return rs
}

// Job is train, which wants four pods at a time and six in all.
func Job(edit func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: Object("Job", "train", "60", nil), Spec: batchv1.JobSpec{Parallelism: new(int32(4)), Completions: new(int32(6)), Template: GPUPods()}}
	edit(j)
	return j
}

// Refusing is the controller's event about an object, told from a minute on.
func Refusing(kind, name string, last time.Duration) *corev1.Event {
	return &corev1.Event{ObjectMeta: Object("Event", name+".1", "70", nil), Reason: "FailedCreate", Type: corev1.EventTypeWarning, Message: Exceeded, Source: corev1.EventSource{Component: strings.ToLower(kind) + "-controller"},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "ml", Name: name, UID: types.UID("uid-" + kind + "-" + name)},
		FirstTimestamp: metav1.NewTime(Start.Add(time.Minute)), LastTimestamp: metav1.NewTime(Start.Add(last))}
}

// About gives an event the uid of another object.
func About(e *corev1.Event, uid types.UID) *corev1.Event {
	e.InvolvedObject.UID = uid
	return e
}

// ReplicaOf is a pod of a ReplicaSet, by uid.
func ReplicaOf(rs *appsv1.ReplicaSet, name string) *corev1.Pod {
	p := WaitingPod(name, "nvidia.com/gpu", Owned("ReplicaSet", rs.Name))
	p.OwnerReferences[0].UID = rs.UID
	return p
}

// StartingPod has its node and a claim, and no sandbox.
func StartingPod(name string) *corev1.Pod {
	claim := "train"
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("u-" + name), CreationTimestamp: metav1.NewTime(Start)},
		Spec: corev1.PodSpec{NodeName: "gpu-1", Containers: []corev1.Container{{Name: "main"}}, ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}}}
}

// UnpreparedEvent is what the kubelet writes of it.
func UnpreparedEvent(p *corev1.Pod) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name + ".1"}, Type: corev1.EventTypeWarning, Reason: "FailedPrepareDynamicResources",
		Message:        "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim train: no such GPU",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}, Source: corev1.EventSource{Component: "kubelet", Host: "gpu-1"}}
}

// Deployments finds ReplicaSet serve-1 of Deployment serve.
func Deployments(rs *appsv1.ReplicaSet) func(kind, namespace, name string) (metav1.Object, bool) {
	return func(kind, namespace, name string) (metav1.Object, bool) {
		return rs, kind == "ReplicaSet" && namespace == "ml" && name == rs.Name
	}
}
