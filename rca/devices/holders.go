package devices

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/whatif"
)

const (
	// maxHolderNodes bounds the nodes on which holders are tried: as many as fixes
	// are proved.
	maxHolderNodes = 12
	// maxHolders bounds the holders tried on one node: a node of eight GPUs, each
	// cut in seven.
	maxHolders = 56
)

// findHolders looks, node by node, for those whose leaving serves the claims.
func (v *Claims) findHolders(ctx context.Context, refused []string) error {
	tried := 0
	for _, node := range refused {
		if !v.would[node] || tried == maxHolderNodes {
			continue
		}
		tried++
		holders := v.holdersFor(node)
		leaving := slices.DeleteFunc(slices.Clone(holders), func(p *corev1.Pod) bool { return !v.leaves(p) })
		if len(leaving) > 0 {
			soon, err := v.leastOf(ctx, node, leaving)
			if err != nil {
				return fmt.Errorf("try holders of devices on %s: %w", node, err)
			}
			if soon != nil {
				v.Holders[node] = soon // who goes anyway is waited for
				continue
			}
		}
		may := slices.DeleteFunc(slices.Clone(holders), func(p *corev1.Pod) bool { return !v.asker.MayLeave(p) })
		victims, err := v.leastOf(ctx, node, may)
		if err != nil {
			return fmt.Errorf("try holders of devices on %s: %w", node, err)
		}
		v.Victims[node], v.Holders[node] = victims, victims
		if victims == nil && len(may) < len(holders) {
			if v.Holders[node], err = v.leastOf(ctx, node, holders); err != nil {
				return fmt.Errorf("try holders of devices on %s: %w", node, err)
			}
		}
	}
	return nil
}

// holdersFor lists the pods that hold devices of a node or the pod's own claims,
// cheapest first.
func (v *Claims) holdersFor(node string) []*corev1.Pod {
	var out []*corev1.Pod
	add := func(claim *resourcev1.ResourceClaim) {
		for _, r := range claim.Status.ReservedFor {
			if p := v.consumer(claim, r); p != nil && p.Name != v.pod.Name && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	for _, d := range v.ByNode[node] {
		if claim := v.Inventory.Holders[d.ID]; claim != nil {
			add(claim)
		}
	}
	for _, claim := range v.Own {
		add(claim)
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		if byCost := v.asker.CostOf([]*corev1.Pod{a}).Compare(v.asker.CostOf([]*corev1.Pod{b})); byCost != 0 {
			return byCost
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out[:min(len(out), maxHolders)]
}

// leastOf finds holders whose leaving serves the claims on a node: one alone if
// that is enough, else as many as it takes without any that is not needed. nil when
// all of them are not enough.
func (v *Claims) leastOf(ctx context.Context, node string, holders []*corev1.Pod) ([]*corev1.Pod, error) {
	for _, p := range holders {
		if ok, err := v.without(ctx, node, []*corev1.Pod{p}); ok || err != nil {
			return []*corev1.Pod{p}, err
		}
	}
	if ok, err := v.without(ctx, node, holders); !ok || err != nil {
		return nil, err
	}
	out := slices.Clone(holders)
	for i := len(out) - 1; i >= 0 && len(out) > 1; i-- { // the dearest stay first
		fewer := slices.Delete(slices.Clone(out), i, i+1)
		ok, err := v.without(ctx, node, fewer)
		if err != nil {
			return nil, err
		}
		if ok {
			out = fewer
		}
	}
	return out, nil
}

// without says whether a node could serve the claims once these pods have left.
func (v *Claims) without(ctx context.Context, node string, gone []*corev1.Pod) (ok bool, err error) {
	err = whatif.Try(v.asker.Cluster.Snapshot, func(s *whatif.Snapshot) error {
		for _, p := range gone {
			s.DeletePod(p.Namespace, p.Name)
		}
		got, err := s.AllowedBy(ctx, Plugin, v.pod, []string{node})
		ok = len(got) > 0
		return err
	})
	return ok, err
}

// MaxHolderFacts bounds the holders that are named as evidence of one request on
// one node.
const MaxHolderFacts = 8

// UsedBy says which pods a claim is reserved for, as the end of a sentence.
func (v *Claims) UsedBy(claim *resourcev1.ResourceClaim) string {
	if len(claim.Status.ReservedFor) == 0 {
		return ", which no pod uses"
	}
	if gone := v.Orphaned(claim); gone != nil {
		return ", reserved for " + goneText(gone)
	}
	text := ", used by " + claim.Status.ReservedFor[0].Name
	if more := len(claim.Status.ReservedFor) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Sharing names the counters of a node's devices that matching devices need and
// allocated ones have used up.
func (v *Claims) Sharing(node string) []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, a := range v.Asks {
		for _, d := range v.ByNode[node] {
			if !a.Readings[d].Fits || v.Inventory.Holders[d.ID] != nil {
				continue
			}
			for _, other := range v.ByNode[node] {
				if claim := v.Inventory.Holders[other.ID]; claim != nil && other.ID.pool == d.ID.pool && shareCounter(d, other) && len(out) < MaxHolderFacts {
					out = append(out, diagnosis.Fact(d.Ref(), "device "+d.ID.Name+" shares counters with "+other.ID.Name+", allocated to ResourceClaim "+claim.Namespace+"/"+claim.Name+v.UsedBy(claim),
						diagnosis.That("spec.devices[name="+d.ID.Name+"]", "", diagnosis.Exists, ""), other.ID.AllocatedTo(claim)))
				}
			}
		}
	}
	return out
}

func shareCounter(a, b *Device) bool {
	for _, x := range a.ConsumesCounters {
		for _, y := range b.ConsumesCounters {
			for name := range x.Counters {
				if _, ok := y.Counters[name]; ok && x.CounterSet == y.CounterSet {
					return true
				}
			}
		}
	}
	return false
}
