package queues

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// ofStandIns is what YuniKorn says of the placeholders of the pod's application: of a gang's members themselves it says
// nothing before all of these have room.
func ofStandIns(c *Case) []Word {
	by, app := c.SchedulerName(), incident.Application(c.Pod)
	if !strings.Contains(by, "yunikorn") || app == "" {
		return nil
	}
	var out []Word
	for _, p := range c.Cluster.State.Pods {
		if p == c.Pod || !incident.StandIn(p) || incident.Application(p) != app || p.DeletionTimestamp != nil || view.Ended(p) {
			continue
		}
		for _, k := range p.Status.Conditions {
			if k.Type == corev1.PodScheduled && k.Status == corev1.ConditionFalse && k.Message != "" {
				out = append(out, Word{about: view.PodRef(p), component: by, reason: k.Reason, message: k.Message, at: k.LastTransitionTime.Time, lasting: true})
			}
		}
	}
	return out
}

// OfYuniKorn is the queue of YuniKorn's that the pod names; empty where it names none.
func OfYuniKorn(c *Case) string {
	for _, key := range []string{"yunikorn.apache.org/queue", "queue"} {
		for _, in := range []map[string]string{c.Pod.Labels, c.Pod.Annotations} {
			if in[key] != "" && strings.Contains(c.SchedulerName(), "yunikorn") {
				return in[key]
			}
		}
	}
	return ""
}
