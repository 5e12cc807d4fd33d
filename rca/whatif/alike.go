package whatif

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// PlaceAlike places pods that differ in their names alone, one after the other, as Place
// does, and returns their nodes. It ends with the first that has none: no other would.
func (s *Snapshot) PlaceAlike(ctx context.Context, pods []*corev1.Pod) ([]string, error) {
	if len(pods) == 0 {
		return nil, nil
	}
	p, fits, err := s.fits(ctx, waiting(pods[0]))
	if err != nil || len(fits) == 0 {
		return nil, err
	}
	if !p.local() {
		return s.placeEach(ctx, pods)
	}
	var nodes []string
	for _, pod := range pods {
		for len(fits) > 0 {
			info, err := s.lister.Get(fits[0])
			if err != nil {
				return nil, err
			}
			if p.accepts(ctx, waiting(pod), info) {
				break
			}
			fits = fits[1:]
		}
		if len(fits) == 0 {
			break
		}
		placed := pod.DeepCopy()
		placed.Spec.NodeName = fits[0]
		s.SetPod(placed)
		nodes = append(nodes, fits[0])
	}
	return nodes, ctx.Err()
}

func (s *Snapshot) placeEach(ctx context.Context, pods []*corev1.Pod) ([]string, error) {
	var nodes []string
	for _, pod := range pods {
		node, err := s.Place(ctx, pod)
		if err != nil {
			return nil, err
		}
		if node == "" {
			break
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// local says whether what a node answers depends on that node alone: then a pod that is
// placed changes the answer of its own node only, and the others need not be asked again.
// PreFilter has left out the plugins that have no say about the pod.
func (p *pass) local() bool {
	return !slices.ContainsFunc(p.filters, func(f fwk.FilterPlugin) bool {
		switch f.Name() {
		case names.NodeName, names.NodeUnschedulable, names.TaintToleration, names.NodeAffinity, names.NodePorts, names.NodeResourcesFit, names.NodeDeclaredFeatures:
			return false
		}
		return true
	})
}
