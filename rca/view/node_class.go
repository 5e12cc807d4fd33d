package view

import (
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// nodeClass is what nodes have in common whose GPUs are of one model, in the same modes, laid
// out the same, and which read the same config: a cluster has thousands of nodes and a
// handful of these. It holds nothing of who is on the GPUs, and is read only.
type nodeClass struct {
	Layouts []placement.Layout // now, of Node.GPUs
	Made    map[string]int64   // by profile as the device plugin spells it, what the layouts have together
	named   map[*NamedLayouts]Remake
	Pending bool // the MIG mode of some GPU waits for a reset
	modes   []NamedMode
	asked   bool // for modes
}

// Remake is what layouts change: which of Node.GPUs, and how many instances of each
// profile, as the device plugin spells it, all of them have then that are not sick.
type Remake struct {
	Layouts map[int]placement.Layout // by the index of the GPU, of those that a config is about
	GPUs    []int
	Indices []int // of the same GPUs
	Made    map[string]int64
	// Sick: one of those that are changed is.
	Sick bool
}

// classKey is all that a class is made from.
type classKey struct {
	source *corev1.ConfigMap
	first  *placement.Grid // of Node.GPUs, for whose model entries are generated
	grid   *placement.Grid
	shape  string
}

// ClassOf is worked out once for nodes that are alike.
func (w *Cluster) ClassOf(n *Node) *nodeClass {
	if n.class != nil {
		return n.class
	}
	key, shared := w.classKey(n)
	if shared && w.classes[key] != nil {
		n.class = w.classes[key]
		return n.class
	}
	n.class = &nodeClass{Made: map[string]int64{}, named: map[*NamedLayouts]Remake{}}
	for _, g := range n.GPUs {
		layout := g.Layout()
		n.class.Layouts = append(n.class.Layouts, layout)
		for profile, count := range layout {
			n.class.Made[Spelled(profile)] += int64(count)
		}
	}
	if shared {
		w.classes[key] = n.class
	}
	if n.Geometry != nil {
		n.class.Pending = slices.ContainsFunc(n.Geometry.Report.GPUs, func(g nodeprobe.GPU) bool { return g.MIG != nil && g.MIG.Current != g.MIG.Pending })
	}
	return n.class
}

// classKey is false for nodes that are like no other: those whose GPUs are of several
// models, or whose reports made no sense.
func (w *Cluster) classKey(n *Node) (classKey, bool) {
	if n.Geometry == nil || len(n.Geometry.Report.GPUs) == 0 || w.classes == nil {
		return classKey{}, false
	}
	gpus := n.Geometry.Report.GPUs
	key := classKey{source: w.ConfigOf(n).Source}
	shape := make([]byte, 0, 256)
	withMIG := 0
	for i := range gpus {
		g := &gpus[i]
		if g.MIG != nil && g.MIG.Current && withMIG < len(n.GPUs) {
			key.grid = n.GPUs[withMIG].Grid
			withMIG++
		} else if i == 0 || !sameProfiles(g, &gpus[i-1]) {
			grid, err := placement.GridOf(*g)
			if err != nil {
				return classKey{}, false
			}
			key.grid = grid
		}
		if key.first == nil {
			key.first = key.grid
		}
		if key.grid != key.first {
			return classKey{}, false
		}
		shape = appendShape(shape, g)
	}
	if key.first = nil; withMIG > 0 {
		key.first = n.GPUs[0].Grid
	}
	key.shape = string(shape)
	return key, withMIG == len(n.GPUs) && !n.Unreadable
}

// sameProfiles says, without reading them, that GPUs report the same profiles.
func sameProfiles(a, b *nodeprobe.GPU) bool {
	return a.Product == b.Product && len(a.Profiles) == len(b.Profiles) && (len(a.Profiles) == 0 || &a.Profiles[0] == &b.Profiles[0])
}

func appendShape(shape []byte, g *nodeprobe.GPU) []byte {
	mode := byte(0)
	if sick(*g) {
		mode = 8
	}
	if g.MIG != nil {
		mode |= 1
		if g.MIG.Current {
			mode |= 2
		}
		if g.MIG.Pending {
			mode |= 4
		}
	}
	shape = binary.AppendVarint(append(shape, mode), int64(g.Index))
	shape = binary.AppendVarint(shape, int64(len(g.Instances)))
	for _, in := range g.Instances {
		shape = append(binary.AppendVarint(shape, int64(len(in.Profile))), in.Profile...)
	}
	return shape
}

// RemakeBy is what the layouts, by the index of the GPU, change on a node.
func (l *nodeClass) RemakeBy(n *Node, layouts map[int]placement.Layout) Remake {
	r := Remake{Layouts: layouts, Made: map[string]int64{}}
	for i, g := range n.GPUs {
		layout, ok := layouts[g.Index]
		if !ok {
			layout = l.Layouts[i]
		} else if !maps.Equal(layout, l.Layouts[i]) {
			r.GPUs, r.Indices = append(r.GPUs, i), append(r.Indices, g.Index)
			r.Sick = r.Sick || g.Sick
		}
		if g.Sick {
			continue
		}
		for profile, count := range layout {
			r.Made[Spelled(profile)] += int64(count)
		}
	}
	return r
}

// RemakeByName is RemakeBy for one of the node's named layouts.
func (l *nodeClass) RemakeByName(n *Node, named *NamedLayouts) Remake {
	r, known := l.named[named]
	if !known {
		r = l.RemakeBy(n, named.Layouts)
		l.named[named] = r
	}
	return r
}

// NamedMode is what an entry of a node's config makes of it by switching MIG on.
type NamedMode struct {
	Config string
	Change ModeChange
	Made   map[string]int64 // by profile as the device plugin spells it
}

// ModesOf lists, by name, the entries of a node's config that switch MIG on.
func (w *Cluster) ModesOf(n *Node) []NamedMode {
	l := w.ClassOf(n)
	if l.asked {
		return l.modes
	}
	l.asked = true
	entries := w.ConfigOf(n).Entries
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		change, ok := entries[name].modeOf(n)
		if !ok {
			continue
		}
		m := NamedMode{Config: name, Change: change, Made: map[string]int64{}}
		for _, layout := range change.Layouts {
			for profile, count := range layout {
				m.Made[Spelled(profile)] += int64(count)
			}
		}
		l.modes = append(l.modes, m)
	}
	return l.modes
}

// Unshared has every node judged by itself from here on. That must make no difference, and
// a test holds it.
func (w *Cluster) Unshared() { w.classes, w.named, w.generated = nil, nil, nil }

// ClassCount is how many classes the nodes that were looked at are of.
func (w *Cluster) ClassCount() int { return len(w.classes) }
