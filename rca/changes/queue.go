package changes

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/queues"
)

func (c *Bench) queueChanges() []Change {
	w := c.Queue.Queued()
	if w == nil {
		return []Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue admits it", "wait until its queue admits it", "kubectl -n "+c.Pod.Namespace+" get workloads.kueue.x-k8s.io")}
	}
	look := fmt.Sprintf("kubectl -n %s describe workloads.kueue.x-k8s.io %s", w.GetNamespace(), w.GetName())
	why, _ := queues.Why(w)
	if queues.Inactive(w) {
		return []Change{queueChange(diagnosis.Manual, diagnosis.NoRisk, "its Workload is active", "see who made its Workload inactive", look)}
	}
	raise := queueChange(diagnosis.RaiseQuota, diagnosis.MediumRisk, "its ClusterQueue has the quota", "raise the quota of its ClusterQueue", look, "kubectl get clusterqueues.kueue.x-k8s.io", "# then kubectl edit clusterqueue.kueue.x-k8s.io NAME: nominalQuota or borrowingLimit")
	raise.Minutes = 1
	switch {
	case strings.Contains(why, "unavailable in ClusterQueue"): // no flavor has it, so no end of others helps (flavorassigner.go)
		return []Change{queueChange(diagnosis.Manual, diagnosis.NoRisk, "its ClusterQueue covers what it asks", "have its ClusterQueue cover what it asks, or ask without it", look, "kubectl get clusterqueues.kueue.x-k8s.io -o yaml  # spec.resourceGroups[].coveredResources")}
	case strings.Contains(why, "maximum capacity"): // nobody who ends leaves enough (flavorassigner.go)
		return []Change{raise}
	case strings.Contains(why, "insufficient"):
		return []Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue admits it", "wait until its queue admits it", look), raise}
	}
	return []Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue admits it", "wait until its queue admits it", look)}
}

func queueChange(kind diagnosis.FixKind, risk diagnosis.Risk, until, title string, commands ...string) Change {
	return Change{Kind: kind, Manual: true, Risk: risk, Until: until, Title: title, Commands: commands}
}
