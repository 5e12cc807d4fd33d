package kubelet

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// RejectedAt is when the kubelet refused a pod: at once when it first saw it, or where it started again, with its machine
// say, and looked at all of its pods afresh. Of that an Event alone tells: a pod's startTime stays.
func RejectedAt(w *view.Cluster, p *corev1.Pod) time.Time {
	at := p.CreationTimestamp.Time
	if p.Status.StartTime != nil {
		at = p.Status.StartTime.Time
	}
	if told := view.Kept(w, readRejections).last[p.UID]; told.After(at) {
		return told
	}
	return at
}

// rejections are when kubelets have said last that they refuse a pod, by its uid.
type rejections struct{ last map[types.UID]time.Time }

func readRejections(w *view.Cluster) *rejections {
	out := &rejections{map[types.UID]time.Time{}}
	for _, e := range w.State.Events {
		o := e.InvolvedObject
		if o.Kind != "Pod" || o.UID == "" || e.Reason != unexpectedAdmission && e.Reason != topologyAffinity && !strings.HasPrefix(e.Reason, "OutOf") {
			continue
		}
		if at := parts.Said(e); at.After(out.last[o.UID]) {
			out.last[o.UID] = at
		}
	}
	return out
}
