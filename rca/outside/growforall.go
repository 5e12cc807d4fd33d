package outside

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// GrowForAll is for the group whose scheduler makes no pods before the nodes have room for all of it: an autoscaler, which goes by
// pods, is never asked (volcano issue 3910).
func GrowForAll(c *edit.Workload, by string) []edit.Change {
	spare := c.Growth().Spare()
	if len(spare) == 0 || len(c.Asks) == 0 {
		return nil
	}
	g, more := spare[0], 1
	for _, n := range c.Cluster.SortedNodes() {
		if has := n.Allocatable(c.Asks[0].Resource); has > 0 && g.Of(scaling.PoolOf(n.Node)) {
			more = max(1, int((queues.Missing(c.Queue, c.Asks[0].Resource)+has-1)/has))
			break
		}
	}
	ch := Growing(diagnosis.SchedulerRefused, fmt.Sprintf("scale node group %s up by %s by hand: %s makes no pod of it before nodes have room for all, and an autoscaler goes by pods", g.Short(), view.CountOf(more, "machine"), by))
	g.Health.Target += more - 1
	ch.Commands = byHandOf(c, []scaling.Group{g}, "")
	if over := g.Health.Target + 1 - g.Health.MaxSize; over > 0 {
		ch.Commands = append([]string{fmt.Sprintf("# it may have %d: its largest size has to be raised by %d first", g.Health.MaxSize, over)}, ch.Commands...)
	}
	ch.Until, ch.Untestable = "node group "+g.Short()+" has "+view.CountOf(more, "node")+" more", ""
	return []edit.Change{ch}
}
