package rca

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// nodeFacts are what most rules ask of a node, read from its maps once and kept: nothing in
// them changes while the cluster is diagnosed.
type nodeFacts struct {
	read    bool
	placed  bool // grid was asked for
	gpus    bool // anything about the node speaks of NVIDIA GPUs
	offers  bool // it offers some of them
	shared  bool // it names some of them as shared
	mig     bool // by its report, some GPU has a MIG mode
	stocks  []stock
	grid    *placement.Grid // of profiles, once asked for; nil where they make none
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
	f.gpus = len(v.reported()) > 0 || v.Labels["nvidia.com/gpu.present"] == "true" || v.Labels["nvidia.com/gpu.product"] != ""
	for i := range v.reported() {
		f.mig = f.mig || v.reported()[i].MIG != nil
	}
	f.stocks = []stock{}
	for name, q := range v.Status.Capacity {
		if isGPU(name) {
			f.gpus = true
			f.stocks = append(f.stocks, stock{name: name, capacity: q.Value()})
		}
	}
	for name, q := range v.Status.Allocatable {
		if isGPU(name) {
			f.offers = f.offers || q.Sign() > 0
			f.shared = f.shared || strings.HasSuffix(string(name), SharedSuffix)
			f.stock(name).allocatable = q.Value()
		}
	}
	return f
}

// stock is what a node has of a GPU resource. There are a few of them, which nearly every
// rule asks for: they are met sooner than in maps.
type stock struct {
	name                  corev1.ResourceName
	allocatable, capacity int64
}

// stock finds one, or adds it.
func (f *nodeFacts) stock(name corev1.ResourceName) *stock {
	for i := range f.stocks {
		if f.stocks[i].name == name {
			return &f.stocks[i]
		}
	}
	f.stocks = append(f.stocks, stock{name: name})
	return &f.stocks[len(f.stocks)-1]
}

// stockOf is what the node has of a resource; nothing where it does not name it.
func (v *nodeView) stockOf(name corev1.ResourceName) stock {
	if isGPU(name) {
		stocks := v.read().stocks
		for i := range stocks {
			if stocks[i].name == name {
				return stocks[i]
			}
		}
		return stock{name: name}
	}
	allocatable, capacity := v.Status.Allocatable[name], v.Status.Capacity[name]
	return stock{name, allocatable.Value(), capacity.Value()}
}

func (v *nodeView) allocatable(name corev1.ResourceName) int64 { return v.stockOf(name).allocatable }

func (v *nodeView) capacity(name corev1.ResourceName) int64 { return v.stockOf(name).capacity }

// reported are the GPUs of the node's report.
func (v *nodeView) reported() []nodeprobe.GPU {
	if v.geometry == nil {
		return nil
	}
	return v.geometry.Report.GPUs
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

// grid is the table of the profiles that the node's GPUs can have; nil where they make
// none.
func (v *nodeView) grid() *placement.Grid {
	if f := &v.facts; !f.placed {
		f.placed = true
		if gpus := v.reported(); len(gpus) > 0 && len(gpus[0].Profiles) > 0 && len(v.gpus) > 0 && v.gpus[0].Index == gpus[0].Index {
			f.grid = v.gpus[0].Grid // read already
			return f.grid
		}
		f.grid, _ = placement.NewGrid(v.profiles()) //nolint:errcheck // where there is none, nothing is told of positions
	}
	return v.facts.grid
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
