package incident

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// FailedPrepare is the reason of the kubelet's event, and of a waiting pod, when the
// devices of a pod's claims could not be prepared (pkg/kubelet/events/event.go, 1.30
// to 1.37). The pod has its node and is Pending: no condition tells of it.
const FailedPrepare = "FailedPrepareDynamicResources"

// WithKubelet is the pods as the events of their kubelets complete them: the
// condition PodReadyToStartContainers, which the kubelet leaves without a reason, says
// why of a pod whose devices could not be prepared. Such a pod is a copy; nobody else
// is.
func WithKubelet(pods []*corev1.Pod, events []*corev1.Event) []*corev1.Pod {
	failing := map[Ref]*corev1.Event{}
	for _, e := range events {
		if o := e.InvolvedObject; e.Reason == FailedPrepare && o.Kind == "Pod" && byKubelet(e) {
			failing[Ref{o.Kind, o.Namespace, o.Name}] = e
		}
	}
	if len(failing) == 0 {
		return pods
	}
	out := slices.Clone(pods)
	for i, p := range out {
		e := failing[Ref{"Pod", p.Namespace, p.Name}]
		if e != nil && (e.InvolvedObject.UID == "" || e.InvolvedObject.UID == p.UID) && Starting(p) {
			out[i] = unprepared(p, e)
		}
	}
	return out
}

// byKubelet says whether an event is a kubelet's: in a dump written by hand nobody
// may be named.
func byKubelet(e *corev1.Event) bool {
	return e.Source.Component == "kubelet" || e.ReportingController == "kubelet" || e.Source.Component == "" && e.ReportingController == ""
}

// Starting says whether a pod with claims has a node, and no sandbox there yet:
// devices are prepared before one is made (kuberuntime_manager.go, SyncPod).
func Starting(p *corev1.Pod) bool {
	if p.Spec.NodeName == "" || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodPending && p.Status.Phase != "" {
		return false
	}
	if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue
	}) {
		return false
	}
	return len(p.Spec.ResourceClaims) > 0 || p.Status.ExtendedResourceClaimStatus != nil
}

func unprepared(p *corev1.Pod, e *corev1.Event) *corev1.Pod {
	p = p.DeepCopy()
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReadyToStartContainers })
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, Reason: FailedPrepare, Message: e.Message})
	return p
}
