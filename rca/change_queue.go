package rca

import (
	"fmt"
	"strings"
)

func (c *Bench) queueChanges() []change {
	w := c.queued()
	if w == nil {
		return []change{queueChange(Wait, NoRisk, "Kueue admits it", "wait until its queue admits it", "kubectl -n "+c.Pod.Namespace+" get workloads.kueue.x-k8s.io")}
	}
	look := fmt.Sprintf("kubectl -n %s describe workloads.kueue.x-k8s.io %s", w.GetNamespace(), w.GetName())
	why, _ := notAdmitted(w)
	if inactive(w) {
		return []change{queueChange(Manual, NoRisk, "its Workload is active", "see who made its Workload inactive", look)}
	}
	raise := queueChange(RaiseQuota, MediumRisk, "its ClusterQueue has the quota", "raise the quota of its ClusterQueue", look, "kubectl get clusterqueues.kueue.x-k8s.io", "# then kubectl edit clusterqueue.kueue.x-k8s.io NAME: nominalQuota or borrowingLimit")
	raise.minutes = 1
	switch {
	case strings.Contains(why, "maximum capacity"): // nobody who ends leaves enough (flavorassigner.go)
		return []change{raise}
	case strings.Contains(why, "insufficient"):
		return []change{queueChange(Wait, NoRisk, "Kueue admits it", "wait until its queue admits it", look), raise}
	}
	return []change{queueChange(Wait, NoRisk, "Kueue admits it", "wait until its queue admits it", look)}
}

func queueChange(kind FixKind, risk Risk, until, title string, commands ...string) change {
	return change{kind: kind, manual: true, risk: risk, until: until, title: title, commands: commands}
}
