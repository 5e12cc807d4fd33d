package queues

import (
	"fmt"
	"strconv"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// totalCount is how many pods a group of Kueue's has; it makes no Workload before all exist
// (pkg/controller/jobs/pod/pod_controller.go, validatePodGroupMetadata).
const (
	totalCount = "kueue.x-k8s.io/pod-group-total-count"
	atOnce     = "kueue.x-k8s.io/pod-group-fast-admission" // it does not wait for them
)

// GroupLacks says that pods of a group do not exist that it has to have; empty where none lacks, and
// where that is not known.
func (c *Case) GroupLacks() (string, diagnosis.Evidence) {
	group, wants := c.Pod.Labels[incident.GroupLabel], c.Pod.Annotations[totalCount]
	n, err := strconv.Atoi(wants)
	if group == "" || err != nil || c.Pod.Annotations[atOnce] != "" || c.Cluster.State.Unread["Pod"] != "" {
		return "", diagnosis.Evidence{}
	}
	made := 0
	for _, p := range c.Cluster.State.Pods {
		if p.Namespace == c.Pod.Namespace && p.Labels[incident.GroupLabel] == group && !view.Ended(p) {
			made++
		}
	}
	if made >= n {
		return "", diagnosis.Evidence{}
	}
	return fmt.Sprintf("group %s is to have %s, and Kueue waits until all of them exist", group, view.CountOf(n, "pod")),
		diagnosis.Fact(c.podRef(), fmt.Sprintf("says that its group has %s in all; fewer exist", view.CountOf(n, "pod")), c.Cluster.OfPod(c.Pod, diagnosis.That("metadata.annotations", totalCount, diagnosis.Is, wants))...)
}
