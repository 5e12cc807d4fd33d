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
func (n *Node) Advertised() string {
	var out []string
	for name, q := range n.Status.Allocatable {
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

// UseOf states what a node offers of a resource and what is requested of it.
func (n *Node) UseOf(a Ask) diagnosis.Evidence { return n.UsedOf(a, n.Allocatable(a.Resource)) }

// UsedOf is the evidence of how much of a resource the node offers and pods request.
func (n *Node) UsedOf(a Ask, allocatable int64) diagnosis.Evidence {
	used := n.Requested[a.Resource]
	return diagnosis.Evidence{Ref: n.Ref(), Fact: "allocatable " + string(a.Resource) + "=" + strconv.FormatInt(allocatable, 10) + ", requested " + strconv.FormatInt(used.Value(), 10)}
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
