package rca

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// spelled is a profile's name as the device plugin spells it.
func spelled(profile string) string { return strings.ReplaceAll(profile, "+", ".") }

// certainty of a statement about positions on this node.
func (n *nodeView) certainty() Certainty {
	if n.doubt != "" {
		return Possible
	}
	if n.geometry != nil && n.geometry.Report.Source == nodeprobe.SourceDRA {
		return Likely // read off the names of devices
	}
	return Proven
}

// startsText says which memory slices a profile needs: "0-3 or 4-7".
func startsText(p nodeprobe.Profile) string {
	parts := make([]string, len(p.Starts))
	for i, s := range p.Starts {
		if parts[i] = fmt.Sprintf("%d-%d", s, s+p.MemorySlices-1); p.MemorySlices == 1 {
			parts[i] = fmt.Sprint(s)
		}
	}
	return "slices " + strings.Join(parts, " or ")
}

// layoutText writes a GPU's instances by position: "1g.5gb@6 2g.10gb@0".
func layoutText(g placement.GPU) string {
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

// advertised lists the NVIDIA resources of the node with their counts.
func (n *nodeView) advertised() string {
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

// useOf states what a node offers of a resource and what is requested of it.
func (n *nodeView) useOf(a ask) Evidence { return n.usedOf(a, n.allocatable(a.resource)) }

func (n *nodeView) usedOf(a ask, allocatable int64) Evidence {
	used := n.requested[a.resource]
	return Evidence{n.ref(), "allocatable " + string(a.resource) + "=" + strconv.FormatInt(allocatable, 10) + ", requested " + strconv.FormatInt(used.Value(), 10)}
}
