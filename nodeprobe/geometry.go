// Package nodeprobe describes the GPU layout of one node: which GPUs it has,
// which MIG instances exist on them, at which memory slices, and who holds
// them. The description travels as a NodeGeometry object of the Kubernetes API
// (cluster-scoped, named after its node).
package nodeprobe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is the API resource under which NodeGeometry objects are stored.
var Resource = schema.GroupVersionResource{Group: "unpend.dev", Version: "v1alpha1", Resource: "nodegeometries"}

// Kind is the API kind of a NodeGeometry.
var Kind = Resource.GroupVersion().WithKind("NodeGeometry")

// Source says where a report comes from, and so what it can prove.
type Source string

// The sources of a report.
const (
	SourceNVML   Source = "nvml"   // the driver: positions and holders
	SourceDRA    Source = "dra"    // ResourceSlices: positions
	SourceLabels Source = "labels" // node labels: counts only, no positions
)

// NodeGeometry is what a probe reported about the GPUs of one node.
type NodeGeometry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Report            Report `json:"report"`
}

// Report is the content of a NodeGeometry.
type Report struct {
	ObservedAt    metav1.Time `json:"observedAt"`
	Source        Source      `json:"source"`
	DriverVersion string      `json:"driverVersion,omitempty"`
	GPUs          []GPU       `json:"gpus,omitempty"`
}

// GPU is one physical GPU.
type GPU struct {
	Index     int    `json:"index"`
	UUID      string `json:"uuid"`
	Product   string `json:"product"`   // NVML's name, e.g. "NVIDIA A100-SXM4-40GB"
	MemoryMiB int64  `json:"memoryMiB"` // total memory
	Healthy   bool   `json:"healthy"`
	// Untold is set by who read a report that does not say whether the GPU is healthy. No
	// probe writes that, and no API server takes it; a dump may have been written by hand.
	Untold bool `json:"-"`
	// MIG is the MIG mode; nil when the model has none.
	MIG *MIGMode `json:"mig,omitempty"`
	// Profiles as the driver reports them; empty when it would not say.
	Profiles []Profile `json:"profiles,omitempty"`
	// Instances are the GPU instances that exist now.
	Instances []Instance `json:"instances,omitempty"`
	// Holders of a whole (non-MIG) GPU; more than one when it is shared.
	Holders []Holder `json:"holders,omitempty"`
}

// MIGMode is the MIG mode now and the one that waits for a GPU reset.
type MIGMode struct {
	Current bool `json:"current"`
	Pending bool `json:"pending"`
}

// Profile is a GPU instance profile of one GPU model. MemorySlices and Starts
// are counted in memory slices (nvml.h, nvmlGpuInstancePlacement_t), not in
// compute slices: on 8-slice boards a 3g takes four of them.
type Profile struct {
	Name          string `json:"name"` // e.g. "1g.5gb+me"
	ID            int    `json:"id"`   // what nvidia-smi mig -lgip prints
	ComputeSlices int    `json:"computeSlices"`
	MemorySlices  int    `json:"memorySlices"`
	MemoryMiB     int64  `json:"memoryMiB"` // informative: moves between driver versions
	Max           int    `json:"max"`
	Starts        []int  `json:"starts"`
}

// Instance is a GPU instance that exists at memory slices [Start, Start+Size).
type Instance struct {
	Profile string   `json:"profile"`
	ID      int      `json:"id"`
	Start   int      `json:"start"`
	Size    int      `json:"size"`
	UUIDs   []string `json:"uuids,omitempty"` // of its MIG devices
	// Holder is nil when nobody holds the instance.
	Holder *Holder `json:"holder,omitempty"`
}

// Holder is the container that holds a GPU or an instance. Unknown means that
// it could not be told: never treat it as free.
type Holder struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Container string `json:"container,omitempty"`
	Unknown   bool   `json:"unknown,omitempty"`
}
