package fixes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// inTurn replaces pods each under its own name. Those that wait, and in no order those that are
// not ready, go at once, whatever the bound; those that run only as far as it allows, which
// counts everybody of the set that does not run, also those that keep their template
// (updateStatefulSetAfterInvariantEstablished in stateful_set_control.go, Kubernetes 1.37).
func (p *replacing) inTurn(ctx context.Context) error {
	if p.ByOrdinal {
		return p.fromTheTop(ctx)
	}
	waiting := max(len(p.Pending), p.Wanted-len(p.old))
	now := min(waiting, maxProved)
	left, broken := waiting-now, p.brokenFirst()
	for {
		away := now + broken + p.Broken + p.made - p.placed + len(p.behind)
		stop := broken + max(0, min(max(1, p.Unavailable)-away, len(p.old)-broken))
		if p.InOrder && now > 0 {
			stop = 0
		}
		if now == 0 && stop == 0 {
			p.pending = left + p.made - p.placed
			return nil
		}
		for range stop {
			p.stop()
		}
		if whole, err := p.refill(ctx, now+stop); err != nil || p.InOrder && !whole {
			p.pending = left + p.made - p.placed
			return err
		}
		now, broken = 0, 0
	}
}

// brokenFirst puts the old pods that are not ready in front, where they are replaced at once,
// and says how many they are. A set in order waits for them instead.
func (p *replacing) brokenFirst() int {
	if p.InOrder {
		return 0
	}
	var broken, ready []*corev1.Pod
	for _, o := range p.old {
		if view.Ready(o) {
			ready = append(ready, o)
		} else {
			broken = append(broken, o)
		}
	}
	p.old = append(broken, ready...)
	return len(broken)
}

// refill makes new pods, with those that found no node before, and then looks for nodes for who
// stays as it is. It says whether every new one has one.
func (p *replacing) refill(ctx context.Context, n int) (whole bool, _ error) {
	n += p.made - p.placed
	p.made = p.placed
	whole, err := p.make(ctx, n)
	if err != nil {
		return false, err
	}
	nodes, err := placeAll(ctx, p.s, p.behind)
	if err != nil {
		return false, fmt.Errorf("place those that stay as they are: %w", err)
	}
	var still []*corev1.Pod
	for i, node := range nodes {
		if node == "" {
			still = append(still, p.behind[i])
		}
	}
	p.kept += len(p.behind) - len(still)
	p.behind = still
	return whole, nil
}

// fromTheTop replaces one pod after the other from the highest ordinal on, who waits in its turn
// as who runs, until a new one does not run: what StatefulSet controllers do that have no bound
// (updateStatefulSet in stateful_set_control.go, with the gate MaxUnavailableStatefulSet off).
func (p *replacing) fromTheTop(ctx context.Context) error {
	waits := slices.Clone(p.Pending)
	p.pending = max(len(waits), p.Wanted-len(p.old))
	missing := min(p.pending-len(waits), maxProved)
	whole, err := p.refill(ctx, missing)
	p.pending -= p.placed
	for err == nil && whole && len(waits)+len(p.old) > 0 && p.made < maxProved+len(p.Running) {
		if len(waits) > 0 && (len(p.old) == 0 || view.Ordinal(waits[0]) > view.Ordinal(p.old[0])) {
			waits = waits[1:]
		} else {
			p.stop()
			p.pending++
		}
		if whole, err = p.refill(ctx, 1); whole {
			p.pending--
		}
	}
	return err
}
