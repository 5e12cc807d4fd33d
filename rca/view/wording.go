package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
)

// Spelled is a profile's name as the device plugin spells it.
func Spelled(profile string) string { return strings.ReplaceAll(profile, "+", ".") }

// Certainty of a statement about positions on this node.
func (n *Node) Certainty() diagnosis.Certainty {
	if n.Doubt != "" {
		return diagnosis.Possible
	}
	if n.Geometry != nil && n.Geometry.Report.Source == nodeprobe.SourceDRA {
		return diagnosis.Likely // read off the names of devices
	}
	return diagnosis.Proven
}

// StartsText says which memory slices a profile needs: "0-3 or 4-7".
func StartsText(p nodeprobe.Profile) string {
	parts := make([]string, len(p.Starts))
	for i, s := range p.Starts {
		if parts[i] = fmt.Sprintf("%d-%d", s, s+p.MemorySlices-1); p.MemorySlices == 1 {
			parts[i] = fmt.Sprint(s)
		}
	}
	return "slices " + strings.Join(parts, " or ")
}

// LayoutText writes a GPU's instances by position: "1g.5gb@6 2g.10gb@0".
func LayoutText(g placement.GPU) string {
	if len(g.Slots) == 0 {
		return "empty"
	}
	text := make([]byte, 0, 128)
	for i := range g.Slots {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendInt(append(append(text, g.Slots[i].Profile...), '@'), int64(g.Slots[i].Start), 10)
	}
	return string(text)
}

// Advertised lists the NVIDIA resources of the node with their counts.
func (n *Node) Advertised() string { return ofNVIDIA(n.Status.Allocatable) }

// Registered is the evidence of what is registered with the node's kubelet.
func (n *Node) Registered() diagnosis.Evidence {
	return diagnosis.Fact(n.Ref(), "capacity "+ofNVIDIA(n.Status.Capacity), claimed(diagnosis.Capacity, n.Status.Capacity)...)
}

func ofNVIDIA(list corev1.ResourceList) string {
	var out []string
	for name, q := range list {
		if strings.HasPrefix(string(name), "nvidia.com/") {
			out = append(out, fmt.Sprintf("%s=%d", name, q.Value()))
		}
	}
	if len(out) == 0 {
		return "no nvidia.com resource"
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Advertises claims what Advertised says.
func (n *Node) Advertises() []diagnosis.Claim {
	return claimed(diagnosis.Allocatable, n.Status.Allocatable)
}

// Asked claims what the node's pods request of the resources whose names begin so.
func (n *Node) Asked(prefix string) []diagnosis.Claim {
	var out []diagnosis.Claim
	for _, name := range SortedNames(n.Requested) {
		if q := n.Requested[name]; strings.HasPrefix(string(name), prefix) {
			out = append(out, diagnosis.That(diagnosis.Requests, string(name), diagnosis.Is, strconv.FormatInt(q.Value(), 10)))
		}
	}
	return out
}

func claimed(path string, list corev1.ResourceList) []diagnosis.Claim {
	var out []diagnosis.Claim
	for _, name := range SortedNames(list) {
		if q := list[name]; strings.HasPrefix(string(name), "nvidia.com/") {
			out = append(out, diagnosis.That(path, string(name), diagnosis.Is, strconv.FormatInt(q.Value(), 10)))
		}
	}
	if len(out) == 0 {
		out = append(out, diagnosis.That("keys("+path+")", "", diagnosis.NoneBegins, "nvidia.com/"))
	}
	return out
}

// Labelled claims labels of the node as it has them.
func (n *Node) Labelled(keys ...string) []diagnosis.Claim {
	out := make([]diagnosis.Claim, len(keys))
	for i, key := range keys {
		if value, ok := n.Labels[key]; ok {
			out[i] = diagnosis.That(diagnosis.Labels, key, diagnosis.Is, value).Of(n.Ref())
		} else {
			out[i] = diagnosis.That(diagnosis.Labels, key, diagnosis.Absent, "").Of(n.Ref())
		}
	}
	return out
}

// NoGPU is the evidence that nothing speaks of a GPU on a node that lacks a resource.
func (n *Node) NoGPU(scarce corev1.ResourceName) diagnosis.Evidence {
	return diagnosis.Fact(n.Ref(), "no label, capacity or report speaks of a GPU",
		diagnosis.That(diagnosis.Capacity, string(scarce), diagnosis.Is, "0"), diagnosis.That(diagnosis.Labels, GPULabels[0], diagnosis.IsNot, "true"),
		diagnosis.That("count(report.gpus)", "", diagnosis.Is, "0").Of("NodeGeometry/"+n.Name))
}

// OfGPU claims something of a GPU in its node's report.
func OfGPU(index int, path string, op diagnosis.Op, value string) diagnosis.Claim {
	return diagnosis.That("report.gpus[index="+strconv.Itoa(index)+"]"+path, "", op, value)
}

// Doubted is the evidence of why positions or holders are not certain.
func (n *Node) Doubted() diagnosis.Evidence {
	if n.Geometry != nil || n.Doubt == "" {
		return diagnosis.Evidence{Ref: n.Ref(), Fact: n.Doubt}
	}
	return diagnosis.Fact(n.Ref(), n.Doubt, diagnosis.That("count(report.gpus)", "", diagnosis.Is, "0").Of("NodeGeometry/"+n.Name))
}

// Tainted claims a taint of the node.
func (n *Node) Tainted(t corev1.Taint) diagnosis.Claim {
	which := "key=" + t.Key + ",effect=" + string(t.Effect)
	if t.Value != "" {
		which += ",value=" + t.Value
	}
	return diagnosis.That(diagnosis.Taints, which, diagnosis.Exists, "").Of(n.Ref())
}

// UseOf states what a node offers of a resource and what is requested of it.
func (n *Node) UseOf(a Ask) diagnosis.Evidence { return n.UsedOf(a, n.Allocatable(a.Resource)) }

// UsedOf is the evidence of how much of a resource the node offers and pods request.
func (n *Node) UsedOf(a Ask, allocatable int64) diagnosis.Evidence {
	used := n.Requested[a.Resource]
	name, has, asked := string(a.Resource), strconv.FormatInt(allocatable, 10), strconv.FormatInt(used.Value(), 10)
	return diagnosis.Fact(n.Ref(), "allocatable "+name+"="+has+", requested "+asked,
		diagnosis.That(diagnosis.Allocatable, name, diagnosis.Is, has), diagnosis.That(diagnosis.Requests, name, diagnosis.Is, asked))
}

// CountOf is the number with its noun, in the plural where it is not 1.
func CountOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// PodList names one pod, or says how many there are and names the first.
func PodList(pods []*corev1.Pod) string {
	if len(pods) == 1 {
		return pods[0].Namespace + "/" + pods[0].Name
	}
	return fmt.Sprintf("%d pods (%s/%s, …)", len(pods), pods[0].Namespace, pods[0].Name)
}

// Gone says of pods that they are no more.
func Gone(pods []*corev1.Pod) string {
	if len(pods) == 1 {
		return PodList(pods) + " is gone"
	}
	return PodList(pods) + " are gone"
}

// SortedNames are the names of the resources, sorted.
func SortedNames(list corev1.ResourceList) []corev1.ResourceName {
	out := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// QuantityText is the quantity as Kubernetes writes it.
func QuantityText(q resource.Quantity) string { return q.String() }

// Cut shortens to n characters, marking that it did.
func Cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// Told is an error's text in at most so many characters: who says it stands first, and the
// reason last, so of a longer one what is between is left out.
func Told(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	head := most / 3
	return strings.TrimSpace(string(r[:head])) + " … " + strings.TrimSpace(string(r[len(r)-(most-head-3):]))
}

// Age is a duration in its largest whole unit.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// Quotable is text of others on one line, without what a terminal would act on.
func Quotable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	return Cut(strings.Join(strings.Fields(s), " "), most)
}
