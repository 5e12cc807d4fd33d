// Package sim is the GPU software of a node without the GPU: a device plugin, a
// probe and a MIG manager that behave as the real ones do, for tests on a real
// control plane and for the demo. It shares no code with the engine it is the
// judge of.
package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// Node describes a simulated GPU node.
type Node struct {
	Name     string
	Model    string // id of a nodeprobe.Model, e.g. "A100-40GB"
	GPUs     int    // default 1
	Strategy string // mixed (default), single or none
	// Layouts are the instances per GPU; a GPU beyond them is partitioned and empty.
	Layouts [][]Placed
	// MIGOff are the GPUs that are whole.
	MIGOff      []int
	Config      string // label nvidia.com/mig.config
	CPU, Memory string // default 96 and 1Ti
	Taints      []corev1.Taint
	Labels      map[string]string
	Cordoned    bool
}

// Placed is an instance at a memory slice.
type Placed struct {
	Profile string
	Start   int
}

const (
	gpuResource  = "nvidia.com/gpu"
	migResources = "nvidia.com/mig-"
)

func modelOf(id string) nodeprobe.Model {
	i := slices.IndexFunc(nodeprobe.Models(), func(m nodeprobe.Model) bool { return m.ID == id })
	if i < 0 {
		return nodeprobe.Model{ID: id, Names: []string{id}, Products: []string{id}}
	}
	return nodeprobe.Models()[i]
}

// All is the layout an entry all-<profile> makes: as many as the GPU takes.
func All(model, profile string) []Placed {
	p, _ := modelOf(model).Profile(profile)
	placed, err := Place(model, map[string]int{p.Name: p.Max})
	if err != nil {
		return nil
	}
	return placed
}

// Place finds positions for counts of profiles by trying creation orders until
// one works, as mig-parted does (pkg/mig/config/config.go,
// iteratePermutationsUntilSuccess). The error says that none does.
func Place(model string, counts map[string]int) ([]Placed, error) {
	m := modelOf(model)
	var order []nodeprobe.Profile
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		p, ok := m.Profile(name)
		if !ok {
			return nil, fmt.Errorf("%s has no profile %s", model, name)
		}
		if counts[name] > p.Max {
			return nil, fmt.Errorf("%s takes at most %d of %s", model, p.Max, name)
		}
		for range counts[name] {
			order = append(order, p)
		}
	}
	slices.SortStableFunc(order, func(a, b nodeprobe.Profile) int { return b.MemorySlices - a.MemorySlices })
	placed, ok := fill(order, map[int]bool{})
	if !ok {
		return nil, fmt.Errorf("%v does not fit on %s", counts, model)
	}
	return placed, nil
}

func fill(order []nodeprobe.Profile, taken map[int]bool) ([]Placed, bool) {
	if len(order) == 0 {
		return nil, true
	}
	p := order[0]
	for _, start := range slices.Backward(p.Starts) {
		free := true
		for s := start; s < start+p.MemorySlices; s++ {
			free = free && !taken[s]
		}
		if !free {
			continue
		}
		next := maps.Clone(taken)
		for s := start; s < start+p.MemorySlices; s++ {
			next[s] = true
		}
		if rest, ok := fill(order[1:], next); ok {
			return append([]Placed{{p.Name, start}}, rest...), true
		}
	}
	return nil, false
}

func (n Node) gpus() int { return max(1, n.GPUs) }

func (n Node) strategy() string {
	if n.Strategy == "" {
		return "mixed"
	}
	return n.Strategy
}

// Object is the node with the labels that GPU feature discovery and the operator
// give it.
func (n Node) Object(now time.Time) *corev1.Node {
	m := modelOf(n.Model)
	product := n.Model
	if len(m.Products) > 0 {
		product = m.Products[0]
	}
	config := n.Config
	if config == "" {
		config = "all-disabled"
	}
	labels := map[string]string{
		"kubernetes.io/hostname": n.Name, "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product,
		"nvidia.com/gpu.count": strconv.Itoa(n.gpus()), "nvidia.com/mig.capable": strconv.FormatBool(len(m.Profiles) > 0),
		"nvidia.com/mig.strategy": n.strategy(), labelConfig: config, labelState: "success",
	}
	maps.Copy(labels, n.Labels)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}, CreationTimestamp: metav1.NewTime(now)},
		Spec:       corev1.NodeSpec{Taints: n.Taints, Unschedulable: n.Cordoned},
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now)}}
	total := resources(n.Geometry(now), n.strategy())
	total[corev1.ResourceCPU] = quantity(n.CPU, "96")
	total[corev1.ResourceMemory] = quantity(n.Memory, "1Ti")
	total[corev1.ResourcePods] = resource.MustParse("110")
	node.Status.Capacity, node.Status.Allocatable = total, total.DeepCopy()
	return node
}

func quantity(s, otherwise string) resource.Quantity {
	if s == "" {
		s = otherwise
	}
	return resource.MustParse(s)
}

// resources is what the device plugin advertises for a geometry.
func resources(geo *nodeprobe.NodeGeometry, strategy string) corev1.ResourceList {
	counts := map[corev1.ResourceName]int64{}
	for _, g := range geo.Report.GPUs {
		if !g.Healthy {
			continue
		}
		if !partitioned(g) || strategy == "none" {
			counts[gpuResource]++
			continue
		}
		for _, in := range g.Instances {
			name := corev1.ResourceName(migResources + strings.ReplaceAll(in.Profile, "+", "."))
			if strategy == "single" {
				name = gpuResource
			}
			counts[name]++
		}
	}
	out := corev1.ResourceList{}
	for name, n := range counts {
		out[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return out
}

func partitioned(g nodeprobe.GPU) bool { return g.MIG != nil && g.MIG.Current }

// Geometry is what the node's probe would report, nobody holding anything.
func (n Node) Geometry(now time.Time) *nodeprobe.NodeGeometry {
	m := modelOf(n.Model)
	geo := &nodeprobe.NodeGeometry{
		TypeMeta:   metav1.TypeMeta{APIVersion: nodeprobe.Kind.GroupVersion().String(), Kind: nodeprobe.Kind.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name},
		Report:     nodeprobe.Report{ObservedAt: metav1.NewTime(now), Source: nodeprobe.SourceNVML, DriverVersion: "580.126.09"},
	}
	for i := range n.gpus() {
		g := nodeprobe.GPU{Index: i, UUID: fmt.Sprintf("GPU-%s-%d", n.Name, i), Product: n.Model, MemoryMiB: 40960, Healthy: true}
		if len(m.Names) > 0 {
			g.Product = m.Names[0]
		}
		if len(m.Profiles) > 0 {
			on := !slices.Contains(n.MIGOff, i)
			g.MIG = &nodeprobe.MIGMode{Current: on, Pending: on}
			g.Profiles = m.Profiles
		}
		if i < len(n.Layouts) {
			g.Instances = instances(g, m, n.Layouts[i], 1)
		}
		geo.Report.GPUs = append(geo.Report.GPUs, g)
	}
	return geo
}

// instances makes what is placed, numbering from first.
func instances(g nodeprobe.GPU, m nodeprobe.Model, placed []Placed, first int) []nodeprobe.Instance {
	var out []nodeprobe.Instance
	for i, pl := range placed {
		p, _ := m.Profile(pl.Profile)
		id := first + i
		out = append(out, nodeprobe.Instance{Profile: p.Name, ID: id, Start: pl.Start, Size: p.MemorySlices, UUIDs: []string{fmt.Sprintf("MIG-%s-%d", g.UUID, id)}})
	}
	slices.SortFunc(out, func(a, b nodeprobe.Instance) int { return a.Start - b.Start })
	return out
}
