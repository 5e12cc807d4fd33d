package evict

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/view"
)

// Ledger keeps what it costs that pods of a cluster leave. That is the same for all who
// ask for it, so one ledger serves all incidents of a diagnosis.
type Ledger struct {
	Cluster *view.Cluster
	known   map[*view.Node][]*Leaving
}

// NewLedger is an empty ledger for a view of the cluster.
func NewLedger(w *view.Cluster) *Ledger {
	return &Ledger{Cluster: w, known: map[*view.Node][]*Leaving{}}
}

// Forget drops what was worked out: what it costs that idle pods leave is another matter
// once they are known to be idle.
func (l *Ledger) Forget() { clear(l.known) }

// Asker is on whose behalf others would leave: a waiting pod, or one that is not there
// yet.
type Asker struct {
	*Ledger
	Priority int64
	gangName string    // as view.GangOf names it; empty for a pod that stands alone
	team     view.Team // as view.Cluster.TeamOf names it; empty for a pod that is not there yet
}

// ForPod asks on behalf of a pod.
func (l *Ledger) ForPod(p *corev1.Pod) *Asker {
	return &Asker{Ledger: l, Priority: int64(corev1helpers.PodPriority(p)), gangName: view.GangOf(p), team: l.Cluster.TeamOf(p)}
}

// ForNextPod asks on behalf of a pod that names no class: it has the default priority.
func (l *Ledger) ForNextPod() *Asker {
	a := &Asker{Ledger: l}
	for _, class := range l.Cluster.State.PriorityClasses {
		if class.GlobalDefault {
			a.Priority = int64(class.Value)
		}
	}
	return a
}

// OfNoTeam asks as if the pod were of another workload: for who ends by itself it may wait.
func (a *Asker) OfNoTeam() *Asker {
	other := *a
	other.team = view.Team{}
	return &other
}

// MayLeave says whether the pod can be a victim: never system pods, pods of nodes and
// DaemonSets, pods of a higher priority than the asker's, of its gang, or of its own
// workload: replica 0 does not leave so that replica 7 runs.
func (a *Asker) MayLeave(p *corev1.Pod) bool { return a.lets(a.Cluster.TraitsOf(p)) }

func (a *Asker) lets(t view.Traits) bool {
	if t.Stays || t.Priority > a.Priority || t.Team == a.team {
		return false
	}
	return t.Gang == "" || t.Gang != a.gangName // else it would be evicted for its own gang
}

// LetsAll says whether the asker may have all of these pods evicted.
func (a *Asker) LetsAll(all []view.Traits) bool {
	for i := range all {
		if !a.lets(all[i]) {
			return false
		}
	}
	return true
}

// CostOf is what it costs that pods leave, and all of the gangs that they are of.
func (l *Ledger) CostOf(victims []*corev1.Pod) Cost {
	cost := NoVictims
	var gangs []string
	for _, p := range victims {
		t := l.Cluster.TraitsOf(p)
		if t.Gang == "" {
			cost = cost.plusOne(t.Priority, t.Lost)
		} else if !slices.Contains(gangs, t.Gang) {
			gangs = append(gangs, t.Gang)
			cost = cost.with(l.Cluster.Together(p), l.Cluster.State.Now)
		}
	}
	if len(victims) > 0 && l.AllIdle(victims) {
		cost.Lost = 0
	} else if len(victims) > 0 {
		cost.Working = 1
	}
	cost.Beyond, _ = l.Cluster.Budgets.Beyond(victims)
	return cost
}

// AllIdle says whether no GPU work is lost with these pods.
func (l *Ledger) AllIdle(victims []*corev1.Pod) bool {
	return !slices.ContainsFunc(victims, func(p *corev1.Pod) bool { return !l.Cluster.Idle(p) })
}

// Leaving is who has to leave several GPUs of a node, and what that costs, for all who ask.
type Leaving struct {
	gpus []int // of Node.GPUs
	view.Tenancy
	Cost Cost
}

// Leaving is worked out once for the node; it is read only.
func (l *Ledger) Leaving(n *view.Node, gpus []int) *Leaving {
	for _, known := range l.known[n] {
		if slices.Equal(known.gpus, gpus) {
			return known
		}
	}
	out := &Leaving{gpus: gpus}
	for _, i := range gpus {
		t := &l.Cluster.Tenancies(n)[i]
		out.Unknown = out.Unknown || t.Unknown
		out.Traits = append(out.Traits, t.Traits...)
		for _, p := range t.Pods {
			if !slices.Contains(out.Pods, p) {
				out.Pods = append(out.Pods, p)
			}
		}
	}
	if out.Pods = slices.Clip(out.Pods); !out.Unknown {
		out.Cost = l.CostOf(out.Pods)
	}
	l.known[n] = append(l.known[n], out)
	return out
}
