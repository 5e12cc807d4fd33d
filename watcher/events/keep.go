package events

import (
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporters are, by reason, whose Events are read. Nil: anybody's but the default scheduler's,
// whose word is the pod's own condition; there may be schedulers and provisioners of any name.
var reporters = map[string][]string{
	// A pod that was refused before it existed (pkg/controller; Volcano's
	// pkg/controllers/job).
	"FailedCreate":            {"replicaset-controller", "job-controller", "statefulset-controller", "daemonset-controller", "vc-controller-manager"},
	"FailedToCreateHeadPod":   {"raycluster-controller"}, // KubeRay's, ray-operator/controllers/ray
	"FailedToCreateWorkerPod": {"raycluster-controller"},
	// Kubeflow's training operator's (pkg/controller.v1), those of one kind that were there before it (tf-operator, pytorch-operator: controllerName), and JobSet's (main.go).
	"FailedCreatePod":   {"tf-operator", "pytorch-operator", "pytorchjob-controller", "tfjob-controller", "xgboostjob-controller", "paddlejob-controller", "jaxjob-controller"},
	"JobCreationFailed": {"jobset"},
	"InternalError":     {"v1beta1Controllers"}, // KServe's (cmd/manager)
	// Devices that could not be prepared, and claims that could not be made.
	"FailedPrepareDynamicResources": {"kubelet"},
	"FailedResourceClaimCreation":   {"resource_claim"},
	// Pods that a kubelet refuses (pkg/kubelet/lifecycle), that the container runtime does not start, or whose volumes are not there
	// (pkg/kubelet/events, pkg/controller/volume/attachdetach), and the upgrade of a node's driver (gpu-operator
	// cmd/gpu-operator/main.go).
	"UnexpectedAdmissionError": {"kubelet"},
	"TopologyAffinityError":    {"kubelet"},
	"FailedCreatePodSandBox":   {"kubelet"},
	"FailedMount":              {"kubelet"},
	"Failed":                   {"kubelet"}, // to pull an image; others of that reason are no news (failedToPull)
	"Unhealthy":                {"kubelet"}, // by a startup probe that is a command; others of that reason say that nobody answers (saidAtStart)
	"Rebooted":                 {"kubelet"}, // of its Node: what ran before the boot is not there any more
	"FailedAttachVolume":       {"attachdetach-controller"},
	"GPUDriverUpgrade":         {"nvidia-gpu-operator"},
	// What autoscalers do about a pod.
	"TriggeredScaleUp":  {"cluster-autoscaler"},
	"NotTriggerScaleUp": {"cluster-autoscaler"},
	"FailedScaleUp":     {"cluster-autoscaler"}, // GKE's (cluster-autoscaler/pkg/events of its own)
	"Nominated":         {"karpenter", "eks-auto-mode/compute"},
	// What becomes of machines: of a NodeClaim that is deleted at once, of NodePools, of node groups.
	"InsufficientCapacityError": {"karpenter", "eks-auto-mode/compute"},
	"NoCompatibleInstanceTypes": {"karpenter", "eks-auto-mode/compute"},
	"ScaleUpFailed":             {"cluster-autoscaler"},
	"FailedToScaleUpGroup":      {"cluster-autoscaler"},
	"ScaleUpTimedOut":           {"cluster-autoscaler"},
	// A Workload that Kueue finds no place for (pkg/scheduler).
	"SecondPassFailed": {"kueue-admission"},
	// A claim that gets no volume (pkg/controller/volume/persistentvolume, and the provisioner of
	// each driver).
	"ClaimMisbound":      {"persistentvolume-controller"},
	"ProvisioningFailed": nil,
	"FailedBinding":      nil,
	// What schedulers say.
	"FailedScheduling": nil,
	"Unschedulable":    nil,
	"NotReady":         nil,
	"FilteringFailed":  nil,
	"PodUnschedulable": nil,
	"BindingError":     nil,
	"BindingFailed":    nil,
}

const (
	// maxMessage is the API's own limit of an Event's note in bytes (events.k8s.io;
	// the older API has none).
	maxMessage = 1024
	// maxWord is the longest name that the API gives to what an Event tells of; one
	// with a longer one is nobody's.
	maxWord = 253
)

// failedToPull is how a kubelet begins when a registry has refused it (pkg/kubelet/images): the status of the pod says soon only
// that it waits to try again.
const failedToPull = "Failed to pull image"

// startup is how a kubelet begins what a startup probe has said (pkg/kubelet/prober). What a command wrote comes behind; of
// probes over the network only whether somebody answers, by these words.
const startup = "Startup probe failed: "

var unanswered = []string{"HTTP probe failed", `Get "`, "dial tcp", "timeout", "service unhealthy", "command "}

// saidAtStart says whether a startup probe's own words are in a message, as those by which a driver's pod tells why no GPU is
// found; the status of the pod tells only that it is not ready.
func saidAtStart(message string) bool {
	said, of := strings.CutPrefix(message, startup)
	return of && strings.TrimSpace(said) != "" && !slices.ContainsFunc(unanswered, func(begins string) bool { return strings.HasPrefix(said, begins) })
}

// wanted says whether anybody reads an Event.
func wanted(e *corev1.Event) bool {
	by := e.ReportingController
	if by == "" {
		by = e.Source.Component
	}
	known, ok := reporters[e.Reason]
	switch {
	case !ok || by == "" || len(by) > maxWord:
		return false
	case known == nil && by == corev1.DefaultSchedulerName, known != nil && !slices.Contains(known, by):
		return false
	}
	o := e.InvolvedObject
	if e.Reason == "Failed" && (o.Kind != "Pod" || !strings.HasPrefix(e.Message, failedToPull)) {
		return false
	}
	if e.Reason == "Unhealthy" && (o.Kind != "Pod" || !saidAtStart(e.Message)) {
		return false
	}
	for _, word := range []string{o.Kind, o.Namespace, o.Name, string(o.UID), e.Source.Component, e.Type} {
		if len(word) > maxWord {
			return false
		}
	}
	return true
}

// Trim is what is kept of an Event: who said what of which object, and when.
func Trim(e *corev1.Event) *corev1.Event {
	o := e.InvolvedObject
	return &corev1.Event{
		TypeMeta: e.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion,
			CreationTimestamp: e.CreationTimestamp, DeletionTimestamp: e.DeletionTimestamp},
		InvolvedObject: corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID},
		Reason:         e.Reason, Message: cut(e.Message), Type: e.Type, Count: e.Count, Series: e.Series,
		Source: corev1.EventSource{Component: e.Source.Component}, ReportingController: e.ReportingController,
		FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime,
	}
}

// cut ends a message between two characters. What is left is a copy: a part of the
// text would hold on to the whole.
func cut(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return string([]byte(message[:end]))
}

// seen is when an Event was last observed.
func seen(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time{Time: e.EventTime.Time}
	}
	return e.CreationTimestamp
}
