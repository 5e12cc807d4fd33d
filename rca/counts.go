package rca

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

const labelGPUCount = "nvidia.com/gpu.count" // physical GPUs, also those with MIG (GFD docs, strategy mixed)

// counts is what labels and live pods say of a node whose positions are not
// known: how many GPUs, how many of them could be untouched, and how many slices
// are held on all of them together.
type counts struct {
	gpus, held int // GPUs with MIG; instances held on them
	unheld     int // memory slices that nobody holds, of all of them
	profile    nodeprobe.Profile
	limit      int // instances of the profile that an empty GPU takes
}

// countsFor is false when labels or the table of boards say too little.
func (n *nodeView) countsFor(a ask) (counts, bool) {
	grid := n.grid()
	if grid == nil || n.manager().strategy != "mixed" {
		return counts{}, false
	}
	p, ok := grid.Profile(a.profile)
	total, err := strconv.Atoi(n.Labels[labelGPUCount])
	if !ok || err != nil {
		return counts{}, false
	}
	whole := int(n.allocatable(wholeGPU)) // those without MIG
	c := counts{gpus: total - whole, profile: p}
	c.unheld = c.gpus * grid.Slices()
	for name, q := range n.requested {
		held, isMIG := strings.CutPrefix(string(name), migPrefix)
		if !isMIG {
			continue
		}
		other, ok := grid.Profile(held)
		if !ok {
			return counts{}, false
		}
		c.held += int(q.Value())
		c.unheld -= int(q.Value()) * other.MemorySlices
	}
	for n := 1; n <= p.Max; n++ {
		if _, fits := grid.Place(placement.Layout{p.Name: n}); fits {
			c.limit = n
		}
	}
	return c, c.gpus > 0
}

// untouched is how many GPUs nobody can be on: each instance held is on one.
func (c counts) untouched() int { return max(0, c.gpus-c.held) }

// fits says that the request certainly has a legal position that is unheld.
func (c counts) fits(a ask) bool { return int64(c.untouched()*c.limit) >= a.count }

// full says that no GPU can have enough unheld slices.
func (c counts) full() bool { return c.unheld < c.profile.MemorySlices }

func (c counts) fact(n *nodeView) Evidence {
	return Evidence{n.ref(), fmt.Sprintf("%d GPUs with MIG by its labels; pods hold %d instances, %d memory slices of all GPUs together are unheld", c.gpus, c.held, c.unheld)}
}
