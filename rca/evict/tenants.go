package evict

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/placement"
)

// Tenants numbers who could have to leave: pods, and gangs as a whole.
type Tenants struct {
	Asker *Asker
	known map[*corev1.Pod]int
	List  []placement.Tenant
	Pods  [][]*corev1.Pod // by tenant
	Above int             // pods that only their priority keeps
}

// NewTenants is an empty list of tenants, judged for one asker.
func NewTenants(a *Asker) *Tenants {
	return &Tenants{Asker: a, known: map[*corev1.Pod]int{}}
}

// Of is the tenant of a pod, a negative number for one that may not leave.
func (t *Tenants) Of(p *corev1.Pod) int {
	if id, ok := t.known[p]; ok {
		return id
	}
	pods := t.Asker.Cluster.Together(p)
	id := len(t.List)
	tenant, stays := t.tenant(pods)
	if stays {
		id = -1
	} else {
		t.List, t.Pods = append(t.List, tenant), append(t.Pods, pods)
	}
	for _, p := range pods {
		t.known[p] = id
	}
	return id
}

// Renumbered numbers from 0 again.
func (t *Tenants) Renumbered() *Tenants {
	return NewTenants(t.Asker)
}

// Holding is the tenant who holds a slot; a negative number when nobody knows who
// that is.
func (t *Tenants) Holding(s placement.Slot) int {
	p := t.Asker.Cluster.State.Pod(s.Holder.Namespace, s.Holder.Pod)
	if s.Unknown || p == nil {
		return -1
	}
	return t.Of(p)
}

// tenant sums a gang up; true when one of its pods may not leave.
func (t *Tenants) tenant(pods []*corev1.Pod) (placement.Tenant, bool) {
	out := placement.Tenant{Priority: int64(corev1helpers.PodPriority(pods[0]))}
	guards := map[int]int{}
	for _, p := range pods {
		guarding := t.Asker.Cluster.Budgets.Guarding(p)
		// The eviction API refuses a pod that more than one budget guards
		// (pkg/registry/core/pod/storage/eviction.go).
		if !t.Asker.MayLeave(p) || len(guarding) > 1 {
			if int64(corev1helpers.PodPriority(p)) > t.Asker.Priority {
				t.Above++
			}
			return out, true
		}
		out.Priority = max(out.Priority, int64(corev1helpers.PodPriority(p)))
		if at := p.Status.StartTime; at != nil {
			// API times are whole seconds, so rounding keeps the order.
			out.Lost += int64(max(0, t.Asker.Cluster.State.Now.Sub(at.Time)).Seconds())
		}
		for _, g := range guarding {
			guards[g]++
		}
	}
	for g, n := range guards {
		out.Guards = append(out.Guards, placement.Guard{Budget: g, Pods: n})
	}
	slices.SortFunc(out.Guards, func(a, b placement.Guard) int { return a.Budget - b.Budget })
	return out, false
}
