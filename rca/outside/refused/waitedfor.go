package refused

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// nvidiaClass is what NVIDIA's toolkit and distributions of Kubernetes call the RuntimeClass by which containers get a GPU's driver.
const nvidiaClass = "nvidia"

// ofWaitedFor is for the pod of its own that a scheduler waits for and that fails: why, its container says.
func ofWaitedFor(c *edit.Workload, by string, p *corev1.Pod, ch *edit.Change) {
	name, why := failing(p)
	if name == "" {
		return
	}
	ref := p.Namespace + "/" + p.Name
	ch.Title = fmt.Sprintf("mend pod %s, which %s waits for: container %s %s", ref, by, name, why)
	class := slices.ContainsFunc(c.Cluster.State.RuntimeClasses, func(r *nodev1.RuntimeClass) bool { return r.Name == nvidiaClass })
	if p.Spec.RuntimeClassName != nil || !class || by != "kai-scheduler" || len(view.AsksOf(p)) == 0 {
		return
	}
	ch.Title = fmt.Sprintf("have KAI's reservation pods run by RuntimeClass %s (its chart's binder.resourceReservation.runtimeClassName): %s, which it waits for, does not, and its container %s", nvidiaClass, ref, why)
	ch.Commands = append(ch.Commands, fmt.Sprintf("helm -n %s upgrade kai-scheduler oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler --reuse-values --set binder.resourceReservation.runtimeClassName=%s  # or make it the nodes' default runtime", by, nvidiaClass))
}

// failing is the first container of a pod that ends, or cannot begin, and what is known of why.
func failing(p *corev1.Pod) (name, why string) {
	for _, s := range p.Status.ContainerStatuses {
		last := s.LastTerminationState.Terminated
		if s.State.Terminated != nil {
			last = s.State.Terminated
		}
		switch {
		case last != nil && last.ExitCode != 0:
			why = fmt.Sprintf("ends with exit code %d", last.ExitCode)
			if last.Message != "" {
				why += " (" + view.Quotable(last.Message, 100) + ")"
			}
			return s.Name, why
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "ContainerCreating":
			return s.Name, "does not begin: " + view.Quotable(s.State.Waiting.Reason, 63)
		}
	}
	return "", ""
}
