package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What keeps a pod from beginning on the node that it has: it is Pending, and no condition
// tells of it. The first four are reasons of Events (pkg/kubelet/events/event.go and
// pkg/controller/volume, 1.30 to 1.37), the others those of a container that waits
// (pkg/kubelet/kuberuntime/kuberuntime_container.go).
const (
	FailedPrepare = "FailedPrepareDynamicResources" // the devices of its claims
	FailedSandbox = "FailedCreatePodSandBox"
	FailedMount   = "FailedMount"
	FailedAttach  = "FailedAttachVolume"

	FailedContainer = "CreateContainerError"
	FailedRun       = "RunContainerError"

	// Untaken is no word of anybody's: the kubelet has not so much as begun with the pod.
	Untaken = "NotTakenUp"
)

// takes is how long a kubelet may say nothing of a pod that has its node: it notes when it has seen it at once (pkg/kubelet/status,
// startTime), before it pulls or prepares anything.
const takes = 10 * time.Minute

// hindrances are, by reason, who writes such Events.
var hindrances = map[string]string{
	FailedPrepare: "kubelet", FailedSandbox: "kubelet", FailedMount: "kubelet", FailedAttach: "attachdetach-controller",
}

// Hinders says whether Events of that reason tell what keeps a pod from beginning on its node.
func Hinders(reason string) bool { return hindrances[reason] != "" }

// Unstarted says whether a pod that waits for that reason has its node, and is not begun there.
func Unstarted(reason string) bool {
	return Hinders(reason) || reason == Untaken || reason == FailedContainer || reason == FailedRun || slices.Contains(refusedByRuntime, reason)
}

// settles is how long the kubelet may say of a pod that its sandbox or its volumes fail before
// that is more than what a node that has just come says, too: drivers of the network and of
// volumes register within it. The kubelet itself waits for volumes so long before it says that they
// do not come (pkg/kubelet/volumemanager, podAttachAndMountTimeout: 2 min 3 s).
const settles = 2 * time.Minute

// WithKubelet is the pods as Events complete them: the condition PodReadyToStartContainers,
// which the kubelet leaves without a reason, says why of a pod that it cannot begin.
// The same says of one of which its kubelet has said nothing at all by now that it is not taken up; nothing is told of a time that
// is zero. Such a pod is a copy; nobody else is.
func WithKubelet(pods []*corev1.Pod, events []*corev1.Event, now time.Time) []*corev1.Pod {
	said := map[Ref][]*corev1.Event{}
	for _, e := range events {
		if o := e.InvolvedObject; o.Kind == "Pod" && Hinders(e.Reason) && by(e, hindrances[e.Reason]) {
			ref := Ref{o.Kind, o.Namespace, o.Name}
			said[ref] = append(said[ref], e)
		}
	}
	out := slices.Clone(pods)
	for i, p := range out {
		if !Starting(p) {
			continue
		}
		if e := hindrance(p, said[Ref{"Pod", p.Namespace, p.Name}]); e != nil {
			out[i] = hindered(p, e.Reason, e.Message)
		} else if untaken(p, now) {
			out[i] = hindered(p, Untaken, "")
		}
	}
	return out
}

// untaken says whether nobody on its node has begun with the pod for long.
func untaken(p *corev1.Pod, now time.Time) bool {
	return p.Status.StartTime == nil && len(p.Status.InitContainerStatuses)+len(p.Status.ContainerStatuses) == 0 && !placed(p).IsZero() && now.Sub(placed(p)) >= takes
}

// by says whether an event is somebody's: in a dump written by hand nobody may be named.
func by(e *corev1.Event, who string) bool {
	return e.Source.Component == who || e.ReportingController == who || e.Source.Component == "" && e.ReportingController == ""
}

// hindrance is the event that tells what keeps a pod from beginning: the newest one, but that volumes did
// not come in time says less than why they did not. Nil where none does, or not for long enough.
func hindrance(p *corev1.Pod, events []*corev1.Event) *corev1.Event {
	own := slices.DeleteFunc(slices.Clone(events), func(e *corev1.Event) bool {
		return e.InvolvedObject.UID != "" && e.InvolvedObject.UID != p.UID
	})
	if len(own) == 0 {
		return nil
	}
	slices.SortFunc(own, func(a, b *corev1.Event) int {
		return cmp.Or(Seen(b).Compare(Seen(a)), cmp.Compare(a.Message, b.Message))
	})
	e := own[0]
	if at := Seen(e); at.Before(placed(p)) && sandboxLost(p) {
		return nil // it is of the time before
	} else if e.Reason != FailedPrepare && !at.IsZero() && at.Sub(placed(p)) < settles {
		return nil
	}
	if e.Reason == FailedMount && outOfTime(e) {
		if i := slices.IndexFunc(own, func(o *corev1.Event) bool {
			return o.Reason == FailedAttach || o.Reason == FailedMount && !outOfTime(o)
		}); i >= 0 {
			e = own[i]
		}
	}
	return e
}

// outOfTime: the volumes did not come, whatever the reason (pkg/kubelet/kubelet.go, SyncPod).
func outOfTime(e *corev1.Event) bool {
	return strings.HasPrefix(e.Message, "Unable to attach or mount volumes")
}

// placed is when the pod was given its node, as far as it says, or when it lost what it had there.
func placed(p *corev1.Pod) time.Time {
	lost := sandboxLost(p)
	for _, c := range p.Status.Conditions {
		if lost && c.Type == corev1.PodReadyToStartContainers {
			return c.LastTransitionTime.Time
		}
		if !lost && c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}

// Starting says whether a pod that asks for devices has a node, and no sandbox there yet:
// devices are prepared and volumes mounted before one is made (kuberuntime_manager.go, SyncPod), after a boot once more.
func Starting(p *corev1.Pod) bool {
	if p.Spec.NodeName == "" || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodPending && p.Status.Phase != "" && !sandboxLost(p) {
		return false
	}
	if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue
	}) {
		return false
	}
	return asksDevices(p)
}

// sandboxLost says whether a pod has run and has no sandbox any more, as after a boot of its machine: its phase stays Running
// (pkg/kubelet, getPhase), whatever comes of the next one.
func sandboxLost(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse
	}) && !slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
}

// asksDevices says whether a pod asks for what drivers announce: by a claim, or as an extended resource.
func asksDevices(p *corev1.Pod) bool {
	if len(p.Spec.ResourceClaims) > 0 || p.Status.ExtendedResourceClaimStatus != nil {
		return true
	}
	for name, q := range Requests(p) {
		if q != "0" && OfDevices(name) {
			return true
		}
	}
	return false
}

func hindered(p *corev1.Pod, reason, says string) *corev1.Pod {
	p = p.DeepCopy()
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReadyToStartContainers })
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, Reason: reason, Message: says})
	return p
}

// Hindrance is what keeps a pod from beginning on its node, as WithKubelet has completed it: the reason, and
// the words of who says it. Empty where nothing is known to.
func Hindrance(p *corev1.Pod) (reason, says string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReadyToStartContainers && (Hinders(c.Reason) || c.Reason == Untaken) {
			return c.Reason, c.Message
		}
	}
	if s := FailingContainer(p.Status); s != nil && asksDevices(p) {
		return s.State.Waiting.Reason, s.State.Waiting.Message
	}
	return "", ""
}

// FailingContainer is the first container that the runtime cannot make or start, as one that waits for the reason of that; nil
// for none.
func FailingContainer(s corev1.PodStatus) *corev1.ContainerStatus {
	for _, of := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range of {
			if w := unmade(of[i]); w != nil {
				c := of[i]
				c.State = corev1.ContainerState{Waiting: w}
				return &c
			}
		}
	}
	return nil
}

// unmade is why the runtime cannot make or start a container: it says so of one that waits, or told how its last try ended. Nil
// where it can.
func unmade(c corev1.ContainerStatus) *corev1.ContainerStateWaiting {
	w, tried := c.State.Waiting, c.State.Terminated
	switch {
	case w != nil && (w.Reason == FailedContainer || w.Reason == FailedRun):
		return w
	case w != nil && w.Reason == crashLoop:
		tried = c.LastTerminationState.Terminated
	}
	if tried == nil || !slices.Contains(refusedByRuntime, tried.Reason) {
		return nil
	}
	return &corev1.ContainerStateWaiting{Reason: tried.Reason, Message: tried.Message}
}

// begunOnce is why a pod that is Running does not run: the container that asks for its devices is not made again, after a reboot, say,
// or was tried and never began. One that was tried counts as begun for the phase (pkg/kubelet, getPhase). Empty for others.
func begunOnce(p *corev1.Pod) string {
	if sandboxLost(p) {
		if reason, _ := Hindrance(p); Hinders(reason) {
			return reason
		}
	}
	failing := FailingContainer(p.Status)
	if p.Status.Phase != corev1.PodRunning || p.Spec.NodeName == "" || failing == nil {
		return ""
	}
	if !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == failing.Name && containerAsks(c) }) {
		return ""
	}
	return failing.State.Waiting.Reason
}

// containerAsks says whether a container asks for what drivers announce.
func containerAsks(c corev1.Container) bool {
	for _, of := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name, q := range of {
			if !q.IsZero() && OfDevices(string(name)) {
				return true
			}
		}
	}
	return len(c.Resources.Claims) > 0
}

// OfDevices says whether a resource is one that drivers announce: of a domain that is not Kubernetes' own.
func OfDevices(resource string) bool {
	domain, _, ok := strings.Cut(resource, "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
