package rca

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
	layouts []placement.Layout // now, of nodeView.gpus
	made    map[string]int64   // by profile as the device plugin spells it, what the layouts have together
	named   map[*namedLayouts]remake
	pending bool // the MIG mode of some GPU waits for a reset
	modes   []namedMode
	asked   bool // for modes
}

// remake is what layouts change: which of nodeView.gpus, and how many instances of each
// profile, as the device plugin spells it, all of them have then.
type remake struct {
	layouts map[int]placement.Layout // by the index of the GPU, of those that a config is about
	gpus    []int
	indices []int // of the same GPUs
	made    map[string]int64
}

// classKey is all that a class is made from.
type classKey struct {
	source *corev1.ConfigMap
	first  *placement.Grid // of nodeView.gpus, for whose model entries are generated
	grid   *placement.Grid
	shape  string
}

// classOf is worked out once for nodes that are alike.
func (w *world) classOf(n *nodeView) *nodeClass {
	if n.class != nil {
		return n.class
	}
	key, shared := w.classKey(n)
	if shared && w.classes[key] != nil {
		n.class = w.classes[key]
		return n.class
	}
	n.class = &nodeClass{made: map[string]int64{}, named: map[*namedLayouts]remake{}}
	for _, g := range n.gpus {
		layout := g.Layout()
		n.class.layouts = append(n.class.layouts, layout)
		for profile, count := range layout {
			n.class.made[spelled(profile)] += int64(count)
		}
	}
	if shared {
		w.classes[key] = n.class
	}
	if n.geometry != nil {
		n.class.pending = slices.ContainsFunc(n.geometry.Report.GPUs, func(g nodeprobe.GPU) bool { return g.MIG != nil && g.MIG.Current != g.MIG.Pending })
	}
	return n.class
}

// classKey is false for nodes that are like no other: those whose GPUs are of several
// models, or whose reports made no sense.
func (w *world) classKey(n *nodeView) (classKey, bool) {
	if n.geometry == nil || len(n.geometry.Report.GPUs) == 0 || w.classes == nil {
		return classKey{}, false
	}
	gpus := n.geometry.Report.GPUs
	key := classKey{source: w.configOf(n).source}
	shape := make([]byte, 0, 256)
	read := 0
	for i := range gpus {
		g := &gpus[i]
		if g.MIG != nil && g.MIG.Current && read < len(n.gpus) {
			key.grid = n.gpus[read].Grid
			read++
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
	if key.first = nil; read > 0 {
		key.first = n.gpus[0].Grid
	}
	key.shape = string(shape)
	return key, read == len(n.gpus) && !n.unreadable
}

// sameProfiles says, without reading them, that GPUs report the same profiles.
func sameProfiles(a, b *nodeprobe.GPU) bool {
	return a.Product == b.Product && len(a.Profiles) == len(b.Profiles) && (len(a.Profiles) == 0 || &a.Profiles[0] == &b.Profiles[0])
}

func appendShape(shape []byte, g *nodeprobe.GPU) []byte {
	mode := byte(0)
	if g.MIG != nil {
		mode = 1
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

// remakeBy is what the layouts, by the index of the GPU, change on a node.
func (l *nodeClass) remakeBy(n *nodeView, layouts map[int]placement.Layout) remake {
	r := remake{layouts: layouts, made: map[string]int64{}}
	for i, g := range n.gpus {
		layout, ok := layouts[g.Index]
		if !ok {
			layout = l.layouts[i]
		} else if !maps.Equal(layout, l.layouts[i]) {
			r.gpus, r.indices = append(r.gpus, i), append(r.indices, g.Index)
		}
		for profile, count := range layout {
			r.made[spelled(profile)] += int64(count)
		}
	}
	return r
}

// remakeByName is remakeBy for one of the node's named layouts.
func (l *nodeClass) remakeByName(n *nodeView, named *namedLayouts) remake {
	r, known := l.named[named]
	if !known {
		r = l.remakeBy(n, named.layouts)
		l.named[named] = r
	}
	return r
}

// namedMode is what an entry of a node's config makes of it by switching MIG on.
type namedMode struct {
	config string
	change modeChange
	made   map[string]int64 // by profile as the device plugin spells it
}

// modesOf lists, by name, the entries of a node's config that switch MIG on.
func (w *world) modesOf(n *nodeView) []namedMode {
	l := w.classOf(n)
	if l.asked {
		return l.modes
	}
	l.asked = true
	entries := w.configOf(n).entries
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		change, ok := entries[name].modeOf(n)
		if !ok {
			continue
		}
		m := namedMode{config: name, change: change, made: map[string]int64{}}
		for _, layout := range change.layouts {
			for profile, count := range layout {
				m.made[spelled(profile)] += int64(count)
			}
		}
		l.modes = append(l.modes, m)
	}
	return l.modes
}

// unshared has every node judged by itself from here on. That must make no difference, and
// a test holds it.
func (w *world) unshared() { w.classes, w.named, w.generated = nil, nil, nil }

// classCount is how many classes the nodes that were looked at are of.
func (w *world) classCount() int { return len(w.classes) }
