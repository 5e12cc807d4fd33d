package fixes

import (
	"context"

	"github.com/unpend/unpend/rca/changes"
	"github.com/unpend/unpend/rca/edit"
)

// raises are the fix that the scheduler preempts for the pod: by itself, or once the
// workload has the least PriorityClass under which it makes room for all of it that
// waits. No pod is taken by another class whose priority is above what this pod has
// now, nor one that a budget keeps.
func (c *Finder) raises(ctx context.Context) ([]*candidate, error) {
	if !c.Raisable() {
		return nil, nil
	}
	own, err := c.Cluster.Snapshot.Preempt(ctx, c.Pod, c.Cluster.State.PDBs)
	if err != nil {
		return nil, err
	}
	if own.Node != "" {
		return []*candidate{c.candidate(c.Node(own.Node), []edit.Change{c.ByItself(own)})}, nil
	}
	classes := c.Classes()
	for _, class := range classes[:min(len(classes), changes.MaxClasses)] {
		taken, err := c.Preempts(ctx, class)
		if err != nil {
			return nil, err
		}
		if len(taken.Victims) == 0 {
			continue
		}
		n := c.Node(taken.Node)
		return []*candidate{c.candidate(n, []edit.Change{c.Raise(c.ShortOn(n), class, taken)})}, nil
	}
	return nil, nil
}
