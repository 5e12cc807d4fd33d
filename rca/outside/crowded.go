package outside

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// excluded is by which resource Kueue leaves nodes out of a topology's domains (pkg/cache/scheduler/tas_flavor_snapshot.go).
var excluded = regexp.MustCompile(`topology .* allows to fit .*excluded: resource "([^"]+)": \d+`)

// leaveDomain is for pods that are to be placed together where others, who ask for no GPU, hold what else they need on most nodes:
// these are named, and may leave one domain. nil where Kueue says something else, or nobody is seen to hold it.
func leaveDomain(c *edit.Workload, why, look string) *edit.Change {
	m := excluded.FindStringSubmatch(why)
	if m == nil || len(c.Asks) == 0 || m[1] == string(c.Asks[0].Resource) {
		return nil
	}
	var holders []*corev1.Pod
	on := 0
	for _, n := range c.Cluster.SortedNodes() {
		if n.Allocatable(c.Asks[0].Resource) == 0 {
			continue
		}
		before := len(holders)
		for _, p := range n.Pods {
			q, by := view.PodRequests(p)[corev1.ResourceName(m[1])], metav1.GetControllerOfNoCopy(p)
			if !q.IsZero() && len(view.AsksOf(p)) == 0 && (by == nil || by.Kind != "DaemonSet") {
				holders = append(holders, p)
			}
		}
		if len(holders) > before {
			on++
		}
	}
	if len(holders) == 0 {
		return nil
	}
	ch := queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue admits it", fmt.Sprintf("wait until who asks for no GPU, %s, lets go of the %s of %s with GPUs, or have them leave one domain of the topology", view.PodList(holders), m[1], view.CountOf(on, "node")), look)
	for _, p := range holders[:min(len(holders), 4)] {
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get pod %s -o wide --show-labels  # whose it is", p.Namespace, p.Name))
	}
	return &ch
}
