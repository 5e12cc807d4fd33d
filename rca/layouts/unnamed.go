package layouts

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// What strategy single cannot name: GPU feature discovery writes the same label, -MIG-INVALID with a count of 0, for each
// of these (k8s-device-plugin, internal/lm), and the device plugin ends on each with other words.
const (
	severalProfiles = "strategy single meets mixed layouts"
	noInstances     = "strategy single meets a GPU with MIG on that has no instances"
	onBesideOff     = "strategy single meets GPUs with MIG on beside others with it off"
	oneOfThese      = "strategy single finds GPUs that it cannot name: MIG is on without instances, on beside off, or of several profiles (nothing reports which)"
)

// byWords are the device plugin's words for each.
var byWords = []struct{ words, says string }{
	{"more than one mig device type", severalProfiles},
	{"no mig devices", noInstances},
	{"same migenabled value", onBesideOff},
}

// Unnamed says which of them a node has, by its report, else by the last words of its device plugin; evidence is what says so.
func Unnamed(n *view.Node) (says string, evidence []diagnosis.Evidence) {
	label := diagnosis.Fact(n.Ref(), "label nvidia.com/gpu.product="+n.Labels["nvidia.com/gpu.product"], n.Labelled("nvidia.com/gpu.product")...)
	if n.Geometry != nil {
		return reportedUnnamed(n), []diagnosis.Evidence{label}
	}
	if p := n.PluginPod(); p != nil {
		for i := range p.Status.ContainerStatuses {
			s := &p.Status.ContainerStatuses[i]
			if says, said := toldUnnamed(p, s, "state", s.State.Terminated); says != "" {
				return says, []diagnosis.Evidence{label, said}
			}
			if says, said := toldUnnamed(p, s, "lastState", s.LastTerminationState.Terminated); says != "" {
				return says, []diagnosis.Evidence{label, said}
			}
		}
	}
	return oneOfThese, []diagnosis.Evidence{label}
}

// toldUnnamed is Unnamed by the words that a container of the device plugin ended with; empty where they are others.
func toldUnnamed(p *corev1.Pod, s *corev1.ContainerStatus, at string, end *corev1.ContainerStateTerminated) (string, diagnosis.Evidence) {
	if end == nil {
		return "", diagnosis.Evidence{}
	}
	words := strings.Join(strings.Fields(end.Message), " ")
	for _, by := range byWords {
		if strings.Contains(strings.ToLower(words), by.words) {
			path := fmt.Sprintf("status.containerStatuses[name=%s].%s.terminated.message", s.Name, at)
			return by.says, diagnosis.Fact(view.PodRef(p), "it ended with: "+view.Told(words, 160), diagnosis.That(path, "", diagnosis.Contains, words))
		}
	}
	return "", diagnosis.Evidence{}
}

// reportedUnnamed is Unnamed by what the driver reports.
func reportedUnnamed(n *view.Node) string {
	profiles, on, off, empty := map[string]bool{}, 0, 0, 0
	for _, g := range n.Reported() {
		switch {
		case g.MIG == nil || !g.MIG.Current:
			off++
			continue
		case len(g.Instances) == 0:
			empty++
		}
		on++
		for _, in := range g.Instances {
			profiles[in.Profile] = true
		}
	}
	switch {
	case empty > 0:
		return noInstances
	case on > 0 && off > 0:
		return onBesideOff
	case len(profiles) > 1:
		return severalProfiles
	}
	return oneOfThese
}
