package rca

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/whatif"
)

// migProfileUnsupported: the model of the node's GPUs has no such profile.
var migProfileUnsupported = Rule{ID: MIGProfileUnsupported, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.migShort(n, b)
	if !ok {
		return nil
	}
	profiles := n.profiles()
	if len(profiles) == 0 || hasProfile(profiles, a.profile) {
		return nil
	}
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	certainty, ref := Likely, n.ref()
	if n.geometry != nil {
		certainty, ref = Proven, "NodeGeometry/"+n.Name
	}
	return &finding{certainty, fmt.Sprintf("%s has no profile %s", n.product(), a.profile),
		[]Evidence{{ref, n.product() + " has " + strings.Join(names, ", ")}}}
}}

func hasProfile(profiles []nodeprobe.Profile, name string) bool {
	return slices.ContainsFunc(profiles, func(p nodeprobe.Profile) bool { return spelled(p.Name) == spelled(name) })
}

// spelled is a profile's name as the device plugin spells it.
func spelled(profile string) string { return strings.ReplaceAll(profile, "+", ".") }

// migInstancesInUse judges by counts of live objects alone.
var migInstancesInUse = Rule{ID: MIGInstancesInUse, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.migShort(n, b)
	if !ok || n.allocatable(a.resource) < a.count {
		return nil
	}
	return &finding{Proven, fmt.Sprintf("its %s instances are all held", a.profile), []Evidence{n.useOf(a)}}
}}

// migLayoutMismatch: a legal position for the profile is free of held
// instances, so only the layout is in the way.
var migLayoutMismatch = Rule{ID: MIGLayoutMismatch, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.migShort(n, b)
	if !ok {
		return nil
	}
	if len(n.gpus) == 0 {
		return n.mismatchByCounts(a)
	}
	room, best := 0, -1
	for i, g := range n.gpus {
		fit := g.Fit(a.profile)
		room += fit.Room
		if fit.Start >= 0 && best < 0 {
			best = i
		}
	}
	if best < 0 || int64(room) < a.count {
		return nil
	}
	g := n.gpus[best]
	fact := fmt.Sprintf("GPU %d: %s could start at memory slice %d, nobody holds it; the layout is %s", g.Index, a.profile, g.Fit(a.profile).Start, layoutText(g))
	return &finding{n.certainty(), "not laid out with " + a.profile + ", though a legal position is unheld",
		[]Evidence{{"NodeGeometry/" + n.Name, fact}, n.useOf(a)}}
}}

// mismatchByCounts is all that can be said without positions.
func (n *nodeView) mismatchByCounts(a ask) *finding {
	if len(n.profiles()) == 0 && n.geometry != nil {
		return nil
	}
	return &finding{Possible, fmt.Sprintf("does not offer %d %s", a.count, a.profile),
		[]Evidence{{n.ref(), "advertises " + n.advertised()}, {n.ref(), n.doubt}}}
}

// certainty of a statement about positions on this node.
func (n *nodeView) certainty() Certainty {
	if n.doubt != "" {
		return Possible
	}
	return Proven
}

// migFragmented: enough memory slices of one GPU are unheld, but every legal
// start runs into a held one.
var migFragmented = Rule{ID: MIGFragmented, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.migShort(n, b)
	if !ok {
		return nil
	}
	for _, g := range n.gpus {
		p, ok := g.Grid.Profile(a.profile)
		if !ok {
			continue
		}
		if fit := g.Fit(a.profile); fit.Free >= p.MemorySlices && fit.Start < 0 {
			fact := fmt.Sprintf("GPU %d: %d of %d memory slices are unheld, %s needs %s", g.Index, fit.Free, g.Grid.Slices(), a.profile, startsText(p))
			return &finding{n.certainty(), "enough slices are unheld, but no legal start for " + a.profile, []Evidence{{"NodeGeometry/" + n.Name, fact}}}
		}
	}
	return nil
}}

// migFull: no GPU of the node has enough unheld memory slices.
var migFull = Rule{ID: MIGFull, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.migShort(n, b)
	if !ok || len(n.gpus) == 0 {
		return nil
	}
	most := 0
	for _, g := range n.gpus {
		most = max(most, g.Fit(a.profile).Free)
	}
	fact := fmt.Sprintf("at most %d memory slices of one GPU are unheld", most)
	return &finding{n.certainty(), "not enough unheld slices for " + a.profile, []Evidence{{"NodeGeometry/" + n.Name, fact}}}
}}

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
	parts := make([]string, len(g.Slots))
	for i, s := range g.Slots {
		parts[i] = fmt.Sprintf("%s@%d", s.Profile, s.Start)
	}
	return strings.Join(parts, " ")
}
