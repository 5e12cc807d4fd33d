package capacity

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// beyondAll says that the MIG instances that are asked for are more memory slices than all
// GPUs have that nobody keeps: no layout, no order and no eviction makes room for them. It is
// empty where that is not so, or not known.
func (q *question) beyondAll(asks []Ask) string {
	least := map[string]int{} // memory slices of a profile, on the board where it has the fewest
	supply := 0
	fresh := view.New(q.world.State)
	for _, v := range fresh.SortedNodes() {
		if outOfUse(v) != "" || q.host.refuses(v) != "" || !v.HasGPUs() {
			continue
		}
		if !positions(v) || !v.HoldersKnown || v.Unreadable {
			return ""
		}
		for _, g := range v.GPUs {
			if g.Sick {
				continue
			}
			supply += g.Grid.Slices()
			for _, s := range g.Slots {
				if s.Held && q.keeps(s) {
					supply -= s.Size
				}
			}
			for _, a := range asks {
				name, _ := strings.CutPrefix(a.Resource, view.MIGPrefix)
				if p, ok := g.Grid.Profile(name); ok && (least[name] == 0 || p.MemorySlices < least[name]) {
					least[name] = p.MemorySlices
				}
			}
		}
	}
	demand := 0
	for _, a := range asks {
		if name, isMIG := strings.CutPrefix(a.Resource, view.MIGPrefix); isMIG {
			demand += a.Count * least[name]
		}
	}
	if demand <= supply {
		return ""
	}
	return fmt.Sprintf("together they are %d memory slices, and the GPUs that nobody has to keep have %d", demand, supply)
}

// keeps says whether who holds a slot may not leave.
func (q *question) keeps(s placement.Slot) bool { return q.tenants.Holding(s) < 0 }
