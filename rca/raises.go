package rca

import "context"

// raises are the fix that the scheduler preempts for the pod: by itself, or once the
// workload has the least PriorityClass under which it makes room for all of it that
// waits. Nobody is taken by another class whose priority is above what the pod has
// now, or whom a budget keeps.
func (c *finder) raises(ctx context.Context) ([]*candidate, error) {
	if !c.raisable() {
		return nil, nil
	}
	own, err := c.world.snap.Preempt(ctx, c.Pod, c.world.state.PDBs)
	if err != nil {
		return nil, err
	}
	if own.Node != "" {
		return []*candidate{c.candidate(c.node(own.Node), []change{c.byItself(own)})}, nil
	}
	classes := c.classes()
	for _, class := range classes[:min(len(classes), maxClasses)] {
		node, victims, err := c.preempts(ctx, class)
		if err != nil {
			return nil, err
		}
		if len(victims) == 0 {
			continue
		}
		n := c.node(node)
		return []*candidate{c.candidate(n, []change{c.raise(c.shortOn(n), class, victims)})}, nil
	}
	return nil, nil
}
