// Package incident is what an Incident is, and how pods, their owners and refusals make
// one per workload and request shape. It is pure: no client, no clock, no goroutine.
package incident

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
)

// Incident says that a workload waits (the travelling type watcher → rca).
type Incident struct {
	ID       string            `json:"id"`
	Workload Ref               `json:"workload"`       // the topmost controller
	Requests map[string]string `json:"requests"`       // of one pod, at most maxRequests of them
	More     int               `json:"more,omitempty"` // requests that are left out
	Pods     []PodRef          `json:"pods"`           // by name, at most maxPods of them
	Waiting  int               `json:"waiting"`        // how many wait in all
	// Missing are those of them that do not exist, because the API server refused them.
	Missing int       `json:"missing,omitempty"`
	Since   time.Time `json:"since,omitzero"` // the earliest
	// Priority is the highest of its pods; nil: none of them says.
	Priority *int32 `json:"priority,omitempty"`
	// Newest is the highest resourceVersion among the pods, those that wait no
	// more included, and the owners that lack some: the same facts at a later time
	// are news (A → B → A), the same facts seen twice are not.
	Newest string `json:"newest"`
	// Resolved: nobody of the workload waits any more.
	Resolved bool `json:"resolved,omitempty"`
}

// Ref names a workload.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// PodRef is a waiting pod and what its status says of that.
type PodRef struct {
	Name   string `json:"name"`
	UID    string `json:"uid"`
	Reason string `json:"reason"`
}

// MaxPods bounds the names an incident carries: a Job with 10,000 pods is one
// message, not one megabyte.
const MaxPods = 20

// Message is the incident as it travels: its id is the same for the same
// content, no matter who publishes it.
func (i Incident) Message() (id string, body []byte, err error) {
	body, err = json.Marshal(i.bounded())
	if err != nil {
		return "", nil, fmt.Errorf("encode incident %s: %w", i.ID, err)
	}
	sum := sha256.Sum256(body)
	return i.ID + "-" + hex.EncodeToString(sum[:8]), body, nil
}

// Older says whether another message of the same incident tells of a later
// moment than this one: what comes from a watcher that lags must not replace it.
func (i Incident) Older(message []byte) bool {
	var other Incident
	return json.Unmarshal(message, &other) == nil && Newer(other.Newest, i.Newest)
}

// Resembles says whether another incident tells the same of who waits, at whatever time.
func (i Incident) Resembles(other Incident) bool {
	i, other = i.bounded(), other.bounded()
	i.Newest = other.Newest
	return reflect.DeepEqual(i, other)
}

// AsResolved is the incident when nobody of it waits any more. Nothing in it
// depends on when somebody looked while it lasted.
func (i Incident) AsResolved() Incident {
	return Incident{ID: i.ID, Workload: i.Workload, Requests: i.Requests, More: i.More, Pods: []PodRef{}, Newest: i.Newest, Resolved: true}
}

// ID is gpu- and 10 hex of sha256 over the workload ("kind/ns/name") and
// its requests ("name=quantity" by name, with commas).
func ID(w Ref, requests map[string]string) string {
	parts := make([]string, 0, len(requests))
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		parts = append(parts, name+"="+requests[name])
	}
	sum := sha256.Sum256([]byte(w.Kind + "/" + w.Namespace + "/" + w.Name + "\n" + strings.Join(parts, ",")))
	return "gpu-" + hex.EncodeToString(sum[:5])
}

// Waiting says whether a pod waits, why, and since when, from the object alone: the
// PodScheduled condition, its absence, or the kubelet's refusal. Of events it knows
// what WithKubelet took over.
func Waiting(pod *corev1.Pod) (reason string, since time.Time, ok bool) {
	since = pod.CreationTimestamp.Time
	if pod.DeletionTimestamp != nil {
		return "", since, false
	}
	if pod.Status.Phase == corev1.PodFailed {
		return FailedPrefix + pod.Status.Reason, since, refused(pod.Status)
	}
	if reason := begunOnce(pod); reason != "" {
		return reason, unready(pod, since), true
	}
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return "", since, false
	}
	if pod.Spec.NodeName != "" {
		reason, _ = Hindrance(pod)
		return reason, since, reason != ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, since, true
		}
	}
	return "NoCondition", since, true
}

// unready is since when a pod that has run is not Ready; since otherwise.
func unready(pod *corev1.Pod, since time.Time) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && c.LastTransitionTime.After(since) {
			return c.LastTransitionTime.Time
		}
	}
	return since
}

// FailedPrefix begins the reasons of pods that the kubelet refused.
const FailedPrefix = "Failed/"

// refused lists the kubelet's reasons for turning a bound pod away (kubelet.go
// rejectPod, 1.36.3): such a pod is Failed, never Pending.
// What other handlers of admission say (a predicate such as NodeAffinity, the node under
// pressure) begins with the same words; older kubelets had only "Pod " before them, and there
// the reason tells.
func refused(s corev1.PodStatus) bool {
	return s.Reason == "UnexpectedAdmissionError" || s.Reason == "TopologyAffinityError" || strings.HasPrefix(s.Reason, "OutOf") ||
		s.Reason != "" && strings.HasPrefix(s.Message, "Pod was rejected: ") ||
		strings.HasPrefix(s.Message, "Pod ") && slices.Contains(admission, s.Reason) ||
		s.Reason == "Evicted" && strings.HasPrefix(s.Message, "Pod The node had condition")
}

// admission are reasons that a kubelet gives of a pod that it does not take, and of no other
// (pkg/kubelet, 1.19 to 1.37). Of Evicted, most have run.
var admission = []string{"NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "NodeShutdown", "SysctlForbidden", "AppArmor", "PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch",
	"PodFeatureUnsupported", "PodLevelResourcesNotSupported", "SeccompNotSupported", "VolumeAttachmentLimitExceeded", "InvalidNodeInfo", "UnexpectedPredicateFailureType"}

// Requests is what one pod asks for, as canonical quantities by resource name.
func Requests(pod *corev1.Pod) map[string]string {
	p := *pod
	p.Spec.Containers, p.Spec.InitContainers = asking(p.Spec.Containers), asking(p.Spec.InitContainers)
	out := map[string]string{}
	for name, q := range resource.PodRequests(&p, resource.PodResourcesOptions{}) {
		out[string(name)] = q.String()
	}
	return out
}

// asking has limits stand in for requests that were left out, as the API server does: a
// dump may hold a manifest.
func asking(containers []corev1.Container) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		if r := &out[i].Resources; len(r.Limits) > 0 {
			requests := maps.Clone(r.Limits)
			maps.Copy(requests, r.Requests)
			r.Requests = requests
		}
	}
	return out
}

// Group folds the waiting pods among those given, and the pods that were refused
// before they existed, into incidents, by id.
func Group(pods []*corev1.Pod, lookup Lookup, refusals ...Refusal) []Incident {
	byID := map[string]*Incident{}
	of := func(pod *corev1.Pod, since time.Time) *Incident {
		w, requests := Topmost(pod, lookup), Requests(pod)
		id := ID(w, requests)
		if byID[id] == nil {
			byID[id] = &Incident{ID: id, Workload: w, Requests: requests, Pods: []PodRef{}, Since: since}
		}
		return byID[id]
	}
	owner, counted := replacing(pods, lookup), map[Ref]int{}
	standsIn := stoodFor(pods)
	ordered, latter := latterly(pods)
	for n, pod := range ordered {
		reason, since, ok := Waiting(pod)
		if !ok || standsIn(pod) {
			continue
		}
		version, lacks, left := owner(pod)
		if left {
			continue
		}
		i := of(pod, since)
		if n >= latter {
			since = i.Since
		}
		i.add(pod, reason, since)
		if lacks >= 0 { // of all that were refused, one after the other, so many are wanted
			ref := ownerRef(metav1.GetControllerOf(pod), pod.Namespace)
			if counted[ref]++; counted[ref] > lacks {
				i.Waiting--
			}
		}
		if Newer(version, i.Newest) { // it tells when they will be waited for no more
			i.Newest = version
		}
	}
	for _, r := range refusals {
		of(r.Pod, r.Since).lack(r)
	}
	out := make([]Incident, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		i := byID[id]
		i.Waiting = max(1, i.Waiting)
		slices.SortFunc(i.Pods, func(a, b PodRef) int { return strings.Compare(a.Name, b.Name) })
		i.Pods = slices.Clip(i.Pods[:min(len(i.Pods), MaxPods)])
		out = append(out, *i)
	}
	return out
}

// replacing says, of a pod that the kubelet refused, the version of the owner that
// makes others in its place, how many pods that lacks (-1: that is not known), and whether
// the pod only lies around: its owner has all it wants. Other pods have no such owner.
func replacing(pods []*corev1.Pod, lookup Lookup) func(*corev1.Pod) (version string, lacks int, left bool) {
	var running, pending map[Ref]int
	return func(pod *corev1.Pod) (string, int, bool) {
		owner := metav1.GetControllerOf(pod)
		if pod.Status.Phase != corev1.PodFailed || owner == nil {
			return "", -1, false
		}
		ref := ownerRef(owner, pod.Namespace)
		o, ok := lookup(ref.Kind, ref.Namespace, ref.Name)
		if !ok || o == nil || o.GetUID() != owner.UID {
			return "", -1, false // nobody replaces a pod whose owner is gone
		}
		m, ok := MakerOf(o)
		if !ok {
			return "", -1, false
		}
		if running == nil { // few clusters have refused pods
			running, pending = inPhase(pods, corev1.PodRunning), inPhase(pods, corev1.PodPending)
		}
		if m.failed {
			return m.GetResourceVersion(), -1, false
		}
		return m.GetResourceVersion(), max(0, m.Wants-max(m.ready, running[ref])-pending[ref]), m.settled(running[ref])
	}
}

// inPhase counts, by controller, the pods that are in a phase and are not about to leave.
func inPhase(pods []*corev1.Pod, phase corev1.PodPhase) map[Ref]int {
	out := map[Ref]int{}
	for _, p := range pods {
		if o := metav1.GetControllerOf(p); o != nil && p.Status.Phase == phase && p.DeletionTimestamp == nil {
			out[ownerRef(o, p.Namespace)]++
		}
	}
	return out
}

// lack adds the pods that an owner lacks.
func (i *Incident) lack(r Refusal) {
	i.Waiting += r.Missing
	i.Missing += r.Missing
	i.raise(r.Pod)
	if r.Since.Before(i.Since) {
		i.Since = r.Since
	}
	if Newer(r.Version, i.Newest) {
		i.Newest = r.Version
	}
}

func (i *Incident) add(pod *corev1.Pod, reason string, since time.Time) {
	i.Waiting++
	i.Pods = append(i.Pods, PodRef{pod.Name, string(pod.UID), reason})
	i.raise(pod)
	if since.Before(i.Since) {
		i.Since = since
	}
	if Newer(pod.ResourceVersion, i.Newest) {
		i.Newest = pod.ResourceVersion
	}
}

// raise has the incident be of a pod's priority where that is higher.
func (i *Incident) raise(pod *corev1.Pod) {
	if p := pod.Spec.Priority; p != nil && (i.Priority == nil || *p > *i.Priority) {
		highest := *p
		i.Priority = &highest
	}
}

// Newer compares resourceVersions as the numbers they have been since 1.35
// (KEP-5504): longer is larger.
func Newer(a, b string) bool {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) > 0
}
