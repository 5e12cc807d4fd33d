package stack

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// heldBefore completes a finding of a driver that does not come up with the pods that have run with the one before it: while they
// hold that, no other can be loaded. Whether that is why only its log says, so nobody is to leave for it first.
func (l *driverLink) heldBefore(f *Finding) {
	before := slices.DeleteFunc(parts.Users(l.n), func(p *corev1.Pod) bool {
		return !slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
			return c.State.Running != nil && c.State.Running.StartedAt.Before(&l.pod.CreationTimestamp)
		})
	})
	if len(before) == 0 || l.Where != "nvidia-driver-ctr" || len(f.Mends) != 1 {
		return
	}
	f.Says += "; " + view.PodList(before) + " " + parts.Have(len(before)) + " run with the one before, and may hold it"
	f.Evidence = append(f.Evidence, diagnosis.Fact(l.n.Ref(), "runs since before the driver's pod: "+view.PodList(before), heldBy(l.n, before)...))
	m := &f.Mends[0]
	m.Steps = append(m.Steps, "see in its log whether the modules of the old driver are in use: then "+view.PodList(before)+" "+parts.Have(len(before))+" to leave first; a driver that does not build is mended without that")
	m.StopsUnknown = true
}
