package rca

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nodeFacts are what most rules ask of a node, read from its maps once and kept: nothing in
// them changes while the cluster is diagnosed.
type nodeFacts struct {
	read    bool
	gpus    bool // anything about the node speaks of NVIDIA GPUs
	offers  bool // it offers some of them
	shared  bool // it names some of them as shared
	manager managerLabels
	ref     string
}

// managerLabels are what MIG manager was asked for on a node, what it says of that, and
// how the device plugin names what comes of it.
type managerLabels struct{ config, state, strategy string }

func (v *nodeView) read() *nodeFacts {
	f := &v.facts
	if f.read {
		return f
	}
	f.read = true
	f.manager = managerLabels{v.Labels[labelMIGConfig], v.Labels[labelMIGState], v.Labels[labelMIGStrategy]}
	f.gpus = v.geometry != nil && len(v.geometry.Report.GPUs) > 0 || v.Labels["nvidia.com/gpu.present"] == "true" || v.Labels["nvidia.com/gpu.product"] != ""
	for name := range v.Status.Capacity {
		f.gpus = f.gpus || isGPU(name)
	}
	for name, q := range v.Status.Allocatable {
		if isGPU(name) {
			f.offers = f.offers || q.Sign() > 0
			f.shared = f.shared || strings.HasSuffix(string(name), SharedSuffix)
		}
	}
	return f
}

// hasGPUs says whether anything about the node speaks of NVIDIA GPUs.
func (v *nodeView) hasGPUs() bool { return v.read().gpus }

// advertisesAny is false where the device plugin offers nothing at all: that is
// its own fault, and no drift.
func (v *nodeView) advertisesAny() bool { return v.read().offers }

func (v *nodeView) manager() managerLabels { return v.read().manager }

func (v *nodeView) ref() string {
	if v.facts.ref == "" {
		v.facts.ref = "Node/" + v.Name
	}
	return v.facts.ref
}

// gpuRoom is how much of a GPU resource the scheduler could still give on a node.
type gpuRoom struct {
	name corev1.ResourceName
	free int64
}

// gpuRooms are those of all GPU resources of the node.
func (v *nodeView) gpuRooms() []gpuRoom {
	if v.room == nil {
		v.room = []gpuRoom{}
		for name := range v.Status.Allocatable {
			if isGPU(name) {
				free := v.free(name)
				v.room = append(v.room, gpuRoom{name, free.Value()})
			}
		}
	}
	return v.room
}
