package watcher

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// trim keeps of an object what an incident is made from: a pod of 22 KB becomes
// one of 3; of what makes pods its counts and the requests of its template are
// left, and of everything else only who owns it.
func trim(o any) (any, error) {
	switch t := o.(type) {
	case *corev1.Pod:
		t.ManagedFields, t.Annotations, t.Labels = nil, nil, incident.Marks(t)
		t.Spec = trimSpec(t.Spec)
		began := t.Status.StartTime
		if t.Status.Phase != corev1.PodPending && t.Status.Phase != corev1.PodFailed { // it tells whom their kubelet has not begun with, or when it refused one
			began = nil
		}
		t.Status = corev1.PodStatus{StartTime: began, Phase: t.Status.Phase, Reason: t.Status.Reason, Conditions: t.Status.Conditions, ExtendedResourceClaimStatus: t.Status.ExtendedResourceClaimStatus, ContainerStatuses: trimStatus(t.Status)}
	case *appsv1.ReplicaSet:
		return &appsv1.ReplicaSet{ObjectMeta: owners.Trim(t), Spec: appsv1.ReplicaSetSpec{Replicas: t.Spec.Replicas, Template: trimTemplate(t.Spec.Template)}, Status: t.Status}, nil
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: owners.Trim(t), Spec: appsv1.DeploymentSpec{Replicas: t.Spec.Replicas, Template: trimTemplate(t.Spec.Template)}, Status: t.Status}, nil
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: owners.Trim(t), Spec: appsv1.StatefulSetSpec{Replicas: t.Spec.Replicas, Template: trimTemplate(t.Spec.Template)}, Status: t.Status}, nil
	case *appsv1.DaemonSet:
		return &appsv1.DaemonSet{ObjectMeta: owners.Trim(t), Spec: appsv1.DaemonSetSpec{Template: trimTemplate(t.Spec.Template)}, Status: t.Status}, nil
	case *batchv1.Job:
		s := t.Spec
		meta := owners.Trim(t)
		if queue := t.Labels[incident.QueueLabel]; queue != "" {
			meta.Labels = map[string]string{incident.QueueLabel: queue}
		}
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: s.Parallelism, Completions: s.Completions, Suspend: s.Suspend,
			PodReplacementPolicy: s.PodReplacementPolicy, Template: trimTemplate(s.Template)}, Status: t.Status}, nil
	case *corev1.LimitRange:
		t.ManagedFields, t.Annotations, t.Labels = nil, nil, nil
	case *corev1.Event:
		if !incident.Refuses(t.Reason) && !incident.Hinders(t.Reason) {
			return &metav1.PartialObjectMetadata{ObjectMeta: owners.Trim(t)}, nil
		}
		return &corev1.Event{ObjectMeta: owners.Trim(t), InvolvedObject: t.InvolvedObject, Reason: t.Reason, Type: t.Type, Source: t.Source, ReportingController: t.ReportingController,
			FirstTimestamp: t.FirstTimestamp, LastTimestamp: t.LastTimestamp, EventTime: t.EventTime, Series: t.Series}, nil
	case *unstructured.Unstructured:
		if h, ok := incident.HeldOf(t.GroupVersionKind().GroupKind(), t); ok {
			return h.Trimmed(trimSpec), nil
		}
	case *incident.Held: // trimmed before
	case metav1.Object:
		return &metav1.PartialObjectMetadata{ObjectMeta: owners.Trim(t)}, nil
	}
	return o, nil
}

// trimStatus keeps that a container fails, and for what reason, or that one runs in a pod whose conditions say that nothing does.
func trimStatus(s corev1.PodStatus) []corev1.ContainerStatus {
	failing := incident.FailingContainer(s)
	if failing == nil {
		unready := slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse
		})
		if i := slices.IndexFunc(s.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil }); unready && i >= 0 {
			return []corev1.ContainerStatus{{Name: s.ContainerStatuses[i].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}
		return nil
	}
	return []corev1.ContainerStatus{{Name: failing.Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: failing.State.Waiting.Reason}}}}
}

func trimTemplate(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: trimSpec(t.Spec)}
}

// trimSpec keeps what tells whether a pod waits, and what for.
func trimSpec(s corev1.PodSpec) corev1.PodSpec {
	keep := corev1.PodSpec{NodeName: s.NodeName, SchedulerName: s.SchedulerName, SchedulingGates: s.SchedulingGates, ResourceClaims: s.ResourceClaims, Resources: s.Resources, Overhead: s.Overhead}
	for _, c := range s.InitContainers {
		keep.InitContainers = append(keep.InitContainers, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range s.Containers {
		keep.Containers = append(keep.Containers, corev1.Container{Name: c.Name, Resources: c.Resources})
	}
	return keep
}
