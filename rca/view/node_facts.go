package view

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// nodeFacts are what most rules ask of a node, read from its maps once and kept: nothing in
// them changes while the cluster is diagnosed.
type nodeFacts struct {
	known   bool
	placed  bool // grid was asked for
	hasGPUs bool // anything about the node speaks of NVIDIA GPUs
	offers  bool // it offers some of them
	Shared  bool // it names some of them as shared
	MIG     bool // by its report, some GPU has a MIG mode
	stocks  []stock
	grid    *placement.Grid // of profiles, once asked for; nil where they make none
	manager managerLabels
	ref     string
}

// managerLabels are what MIG manager was asked for on a node, what it says of that, and
// how the device plugin names what comes of it.
type managerLabels struct{ Config, State, Strategy string }

// Facts are worked out once.
func (v *Node) Facts() *nodeFacts {
	f := &v.facts
	if f.known {
		return f
	}
	f.known = true
	f.manager = managerLabels{v.Labels[LabelMIGConfig], v.Labels[LabelMIGState], v.Labels[LabelMIGStrategy]}
	f.hasGPUs = len(v.Reported()) > 0 || v.Labels["nvidia.com/gpu.present"] == "true" || v.Labels["nvidia.com/gpu.product"] != ""
	for i := range v.Reported() {
		f.MIG = f.MIG || v.Reported()[i].MIG != nil
	}
	f.stocks = []stock{}
	for name, q := range v.Status.Capacity {
		if IsGPU(name) {
			f.hasGPUs = true
			f.stocks = append(f.stocks, stock{name: name, Capacity: q.Value()})
		}
	}
	for name, q := range v.Status.Allocatable {
		if IsGPU(name) {
			f.offers = f.offers || q.Sign() > 0
			f.Shared = f.Shared || strings.HasSuffix(string(name), SharedSuffix)
			f.stock(name).Allocatable = q.Value()
		}
	}
	f.hasGPUs = f.hasGPUs || len(v.Hardware()) > 0
	return f
}

// Stocks are what the node has of each GPU resource that was ever registered there.
func (f *nodeFacts) Stocks() []stock { return f.stocks }

// stock is what a node has of a GPU resource. There are a few of them, which nearly every
// rule asks for: they are met sooner than in maps.
type stock struct {
	name                  corev1.ResourceName
	Allocatable, Capacity int64
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

// StockOf is what the node has of a resource; nothing where it does not name it.
func (v *Node) StockOf(name corev1.ResourceName) stock {
	if IsGPU(name) {
		stocks := v.Facts().stocks
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

// Allocatable is what the device plugin offers of a GPU resource, held or not.
func (v *Node) Allocatable(name corev1.ResourceName) int64 { return v.StockOf(name).Allocatable }

// Capacity is that with the devices that the plugin calls unhealthy.
func (v *Node) Capacity(name corev1.ResourceName) int64 { return v.StockOf(name).Capacity }

// Reported are the GPUs of the node's report.
func (v *Node) Reported() []nodeprobe.GPU {
	if v.Geometry == nil {
		return nil
	}
	return v.Geometry.Report.GPUs
}

// HasGPUs says whether anything about the node speaks of NVIDIA GPUs, offered
// or not.
func (v *Node) HasGPUs() bool { return v.Facts().hasGPUs }

// AdvertisesAny is false where the device plugin offers nothing at all: that is
// its own fault, and no drift.
func (v *Node) AdvertisesAny() bool { return v.Facts().offers }

// Manager is what the node's labels say of MIG manager.
func (v *Node) Manager() managerLabels { return v.Facts().manager }

// Ref names the node in evidence.
func (v *Node) Ref() string {
	if v.facts.ref == "" {
		v.facts.ref = "Node/" + v.Name
	}
	return v.facts.ref
}

// grid is the table of the profiles that the node's GPUs can have; nil where they make
// none.
func (v *Node) grid() *placement.Grid {
	if f := &v.facts; !f.placed {
		f.placed = true
		if gpus := v.Reported(); len(gpus) > 0 && len(gpus[0].Profiles) > 0 && len(v.GPUs) > 0 && v.GPUs[0].Index == gpus[0].Index {
			f.grid = v.GPUs[0].Grid // read already
			return f.grid
		}
		f.grid, _ = placement.NewGrid(v.Profiles()) //nolint:errcheck // where there is no grid, the diagnosis says nothing of positions
	}
	return v.facts.grid
}

// spareGPUs is how much of a GPU resource the scheduler could still give on a node.
type spareGPUs struct {
	Name corev1.ResourceName
	Free int64
}

// SpareGPUs are those of all GPU resources of the node.
func (v *Node) SpareGPUs() []spareGPUs {
	if v.spare == nil {
		v.spare = []spareGPUs{}
		for name := range v.Status.Allocatable {
			if IsGPU(name) {
				free := v.Free(name)
				v.spare = append(v.spare, spareGPUs{name, free.Value()})
			}
		}
	}
	return v.spare
}

// StrategySingle is the MIG strategy that offers instances as nvidia.com/gpu.
const StrategySingle = "single"

// SharedSuffix is what the device plugin adds with renameByDefault
// (k8s-device-plugin, sharing configuration).
const SharedSuffix = ".shared"

// Paused is the value of a gpu.deploy label while MIG manager has stopped its
// component (mig-parted pkg/mig/reconfigure/reconfigure.go).
const Paused = "paused-for-mig-change"

// GivenUp is the NodeClaim whose machine has joined as a node in a way by which Karpenter does not take it
// for its own: it deletes such a machine a quarter of an hour after it was launched
// (pkg/controllers/nodeclaim/lifecycle/liveness.go). Empty where there is none.
func (w *Cluster) GivenUp(node string) string {
	n := w.Nodes[node]
	if n == nil || n.Spec.ProviderID == "" {
		return ""
	}
	for _, k := range w.Outlook().Claims {
		if k.ProviderID == n.Spec.ProviderID && k.Registered.Status == string(corev1.ConditionFalse) {
			return k.Name
		}
	}
	return ""
}
