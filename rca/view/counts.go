package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
)

// LabelGPUCount counts physical GPUs, also those with MIG (GFD docs, strategy mixed).
const LabelGPUCount = "nvidia.com/gpu.count"

// counts is what labels and live pods say of a node whose positions are not
// known: how many GPUs, how many of them could be untouched, and how many slices
// are held on all of them together.
type counts struct {
	migGPUs, held int // GPUs with MIG; instances held on them
	unheld        int // memory slices that nobody holds, of all of them
	profile       nodeprobe.Profile
	limit         int // instances of the profile that an empty GPU takes
}

// CountsFor is false when labels or the table of boards say too little.
func (n *Node) CountsFor(a Ask) (counts, bool) {
	grid := n.grid()
	if grid == nil || n.Manager().Strategy != "mixed" {
		return counts{}, false
	}
	p, ok := grid.Profile(a.Profile)
	total, err := strconv.Atoi(n.Labels[LabelGPUCount])
	if !ok || err != nil {
		return counts{}, false
	}
	whole := int(n.Allocatable(WholeGPU)) // those without MIG
	c := counts{migGPUs: total - whole, profile: p}
	c.unheld = c.migGPUs * grid.Slices()
	for name, q := range n.Requested {
		held, isMIG := strings.CutPrefix(string(name), MIGPrefix)
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
	return c, c.migGPUs > 0
}

// Untouched is how many GPUs nobody can be on: each instance held is on one.
func (c counts) Untouched() int { return max(0, c.migGPUs-c.held) }

// Fits says that the request certainly has a legal position that is unheld.
func (c counts) Fits(a Ask) bool { return int64(c.Untouched()*c.limit) >= a.Count }

// Full says that no GPU can have enough unheld slices.
func (c counts) Full() bool { return c.unheld < c.profile.MemorySlices }

func (c counts) Fact(n *Node) diagnosis.Evidence {
	const gpus = "metadata.labels[" + LabelGPUCount + "] - status.allocatable[" + WholeGPU + "]"
	is := func(path string, n int) diagnosis.Claim {
		return diagnosis.That(path, "", diagnosis.Is, strconv.Itoa(n))
	}
	claims := append(n.Asked(MIGPrefix), is(gpus, c.migGPUs), is("requests["+MIGPrefix+"*]", c.held))
	if c.Untouched() > 0 {
		claims = append(claims, is(gpus+" - requests["+MIGPrefix+"*]", c.Untouched()))
	}
	return diagnosis.Fact(n.Ref(), fmt.Sprintf("%s with MIG by its labels; pods hold %s, %d memory slices of all GPUs together are unheld", CountOf(int(c.migGPUs), "GPU"), CountOf(int(c.held), "instance"), c.unheld), claims...)
}
