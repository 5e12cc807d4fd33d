package admit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// Undefault takes a device out of the defaults of a LimitRange, where these give it to the pod: nobody who
// states none means to ask some.
func Undefault(c *edit.Workload, name corev1.ResourceName) (edit.Change, bool) {
	g := admission.GivenBy(c.Cluster.State.LimitRanges, c.Pod, name)
	if g == nil {
		return edit.Change{}, false
	}
	without := func(containers []corev1.Container) {
		for i := range containers {
			if slices.Contains(g.Containers, containers[i].Name) {
				delete(containers[i].Resources.Requests, name)
				delete(containers[i].Resources.Limits, name)
			}
		}
	}
	title := fmt.Sprintf("take %s out of the defaults of LimitRange %s, which gives it to %s", name, g.Range.Name, strings.Join(g.Containers, ", "))
	return c.Once(title, func(title string) edit.Change {
		return edit.Change{Kind: diagnosis.ChangeRequest, Cause: diagnosis.GPURequestTooLarge, Manual: true, Minutes: 2, Risk: diagnosis.LowRisk, Title: title,
			Pod: func(p *corev1.Pod) {
				without(p.Spec.Containers)
				without(p.Spec.InitContainers)
			},
			Commands: []string{fmt.Sprintf("kubectl -n %s edit limitrange %s  # spec.limits, type Container: no %s in default and defaultRequest", g.Range.Namespace, g.Range.Name, name),
				fmt.Sprintf("kubectl -n %s delete pod %s  # its owner makes another, which is given none", c.Pod.Namespace, c.Pod.Name)}}
	}), true
}
