package queues

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// over are the reasons of pods that YuniKorn fails with their application: that is then over for good, and pods made since under its
// id get no node (yunikorn-k8shim pkg/cache/application.go; kuberay issue 5301).
var over = []string{reservationTimeout, "ApplicationRejected"}

// reservationTimeout is of a gang in the style Hard: its placeholders did not all get a node in time.
const reservationTimeout = "ResourceReservationTimeout"

// gaveUp is what YuniKorn says of the pod's application, where it has failed pods of the same workload with it.
func gaveUp(c *Case) []Word {
	by := c.SchedulerName()
	if !strings.Contains(by, "yunikorn") {
		return nil
	}
	for _, p := range c.Cluster.State.Pods {
		if p.Namespace == c.Pod.Namespace && p.Status.Phase == corev1.PodFailed && p.DeletionTimestamp == nil && slices.Contains(over, p.Status.Reason) && c.Cluster.MemberOf(p) == c.Cluster.MemberOf(c.Pod) {
			return []Word{{about: "Pod/" + p.Namespace + "/" + p.Name, component: by, reason: p.Status.Reason, message: cmp.Or(p.Status.Message, p.Status.Reason), at: p.CreationTimestamp.Time, lasting: true}}
		}
	}
	return nil
}

// OfTimeout says whether they are that a gang did not get its nodes in time, and is over with that.
func (w Word) OfTimeout() bool { return w.reason == reservationTimeout }
