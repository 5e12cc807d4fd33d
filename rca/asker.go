package rca

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Ledger keeps what it costs that pods of a cluster leave. That is the same for all who
// ask for it, so one ledger serves all incidents of a diagnosis.
type Ledger struct {
	world *world
	known map[*nodeView][]*leaving
}

func newLedger(w *world) *Ledger {
	return &Ledger{world: w, known: map[*nodeView][]*leaving{}}
}

// forget drops what was worked out: what it costs that idle pods leave is another matter
// once they are known to be idle.
func (l *Ledger) forget() { clear(l.known) }

// Asker is on whose behalf others would leave: a waiting pod, or one that is not there
// yet.
type Asker struct {
	*Ledger
	prio     int64
	gangName string // as gangOf names it; empty for a pod that stands alone
}

// forPod asks on behalf of a pod.
func (l *Ledger) forPod(p *corev1.Pod) *Asker {
	return &Asker{Ledger: l, prio: int64(corev1helpers.PodPriority(p)), gangName: gangOf(p)}
}

// forNextPod asks on behalf of a pod that names no class: it has the default priority.
func (l *Ledger) forNextPod() *Asker {
	a := &Asker{Ledger: l}
	for _, class := range l.world.state.PriorityClasses {
		if class.GlobalDefault {
			a.prio = int64(class.Value)
		}
	}
	return a
}

// mayLeave says whether the pod can be a victim: never system pods, pods of nodes and
// DaemonSets, pods of a higher priority than the asker's, or of its gang.
func (a *Asker) mayLeave(p *corev1.Pod) bool { return a.lets(a.world.traitsOf(p)) }

func (a *Asker) lets(t traits) bool {
	if t.stays || t.prio > a.prio {
		return false
	}
	return t.gang == "" || t.gang != a.gangName // else it would be evicted for its own gang
}

func (a *Asker) letsAll(all []traits) bool {
	for i := range all {
		if !a.lets(all[i]) {
			return false
		}
	}
	return true
}

// costOf is what it costs that pods leave, and all of the gangs that they are of.
func (l *Ledger) costOf(victims []*corev1.Pod) victimCost {
	cost := noVictims
	var gangs []string
	for _, p := range victims {
		t := l.world.traitsOf(p)
		if t.gang == "" {
			cost = cost.plusOne(t.prio, t.lost)
		} else if !slices.Contains(gangs, t.gang) {
			gangs = append(gangs, t.gang)
			cost = cost.with(l.world.together(p), l.world.state.Now)
		}
	}
	if len(victims) > 0 && l.allIdle(victims) {
		cost.lost = 0
	} else if len(victims) > 0 {
		cost.working = 1
	}
	cost.beyond, _ = l.world.pdbs.beyond(victims)
	return cost
}

// allIdle says whether no GPU work is lost with these pods.
func (l *Ledger) allIdle(victims []*corev1.Pod) bool {
	return !slices.ContainsFunc(victims, func(p *corev1.Pod) bool { return !l.world.idle(p) })
}

// leaving is who has to leave several GPUs of a node, and what that costs, for all who ask.
type leaving struct {
	gpus []int // of nodeView.gpus
	tenancy
	cost victimCost
}

// leaving is worked out once for the node; it is read only.
func (l *Ledger) leaving(n *nodeView, gpus []int) *leaving {
	for _, known := range l.known[n] {
		if slices.Equal(known.gpus, gpus) {
			return known
		}
	}
	out := &leaving{gpus: gpus}
	for _, i := range gpus {
		t := &l.world.tenancies(n)[i]
		out.unknown = out.unknown || t.unknown
		out.traits = append(out.traits, t.traits...)
		for _, p := range t.pods {
			if !slices.Contains(out.pods, p) {
				out.pods = append(out.pods, p)
			}
		}
	}
	if out.pods = slices.Clip(out.pods); !out.unknown {
		out.cost = l.costOf(out.pods)
	}
	l.known[n] = append(l.known[n], out)
	return out
}
