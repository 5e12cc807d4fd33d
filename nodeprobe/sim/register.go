package sim

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
)

// Registered is the pod of a node's device plugin that the kubelet has last heard of;
// empty when it is gone, or there was none.
func (s *Stack) Registered(node string) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plugins[node]
}

// register is what the kubelet hears of the device plugin's pod, on a node that has one:
// with the pod its devices go, and the next one registers what it finds. The pod that is
// there when the node is first seen has registered already, whatever the node offers.
func (s *Stack) register(ctx context.Context, node *corev1.Node, geo *nodeprobe.NodeGeometry, pods []*corev1.Pod) error {
	i := slices.IndexFunc(pods, func(p *corev1.Pod) bool {
		return strings.Contains(p.Name, "nvidia-device-plugin") && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
	})
	s.mu.Lock()
	was, seen := s.plugins[node.Name]
	mute := s.faults[node.Name].Mute
	s.mu.Unlock()
	switch {
	case i < 0 && was != "":
		if err := s.advertise(ctx, node.Name, corev1.ResourceList{}, false); err != nil {
			return err
		}
	case i >= 0 && seen && pods[i].UID != was && !mute:
		if err := s.advertise(ctx, node.Name, resources(geo, node.Labels["nvidia.com/mig.strategy"]), true); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case i >= 0:
		s.plugins[node.Name] = pods[i].UID
	case seen:
		s.plugins[node.Name] = ""
	}
	return nil
}
