package rca

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Of pods that have their GPUs and do not run, so many are named, once they are so old: an image takes its time.
const (
	mostPlaced = 3
	placedFor  = 5 * time.Minute
)

// Placed tells of pods of a namespace, or of all, that ask for GPUs, have their node and are Pending there: they wait for no
// GPU, and yet nobody works with those that they hold. A line each.
func Placed(st *cluster.State, namespace string) []string {
	var out []string
	more := 0
	for _, p := range st.Pods {
		if namespace != "" && p.Namespace != namespace || !HoldsAndWaits(p) || st.Now.Sub(p.CreationTimestamp.Time) < placedFor {
			continue
		}
		if len(out) == mostPlaced {
			more++
			continue
		}
		out = append(out, fmt.Sprintf("pod %s/%s has its node and its GPUs, and is, %s old, %s%s", p.Namespace, p.Name, view.Age(st.Now.Sub(p.CreationTimestamp.Time)), incident.Standing(p), LastWords(st, p)))
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%d more pods have their GPUs and are Pending", more))
	}
	return out
}

// HoldsAndWaits says whether a pod that asks for GPUs has its node and is Pending there.
func HoldsAndWaits(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodPending && p.Spec.NodeName != "" && p.DeletionTimestamp == nil && slices.ContainsFunc(p.Spec.Containers, view.AsksGPU)
}

// LastWords is the newest warning about a pod that says more than that something is tried again.
func LastWords(st *cluster.State, p *corev1.Pod) string {
	var last *corev1.Event
	for _, e := range st.Events {
		o := e.InvolvedObject
		if o.Kind != "Pod" || o.Namespace != p.Namespace || o.Name != p.Name || o.UID != "" && o.UID != p.UID || e.Type != corev1.EventTypeWarning || strings.Contains(e.Message, "BackOff") || strings.HasPrefix(e.Message, "Back-off") {
			continue
		}
		if !strings.HasPrefix(e.Message, "Error: Err") && (last == nil || incident.Seen(e).After(incident.Seen(last))) { // that only names the reason
			last = e
		}
	}
	if last == nil || strings.Contains(incident.Standing(p), last.Message) {
		return ""
	}
	return "; " + last.Reason + ": " + view.Told(strings.Join(strings.Fields(last.Message), " "), 300)
}
