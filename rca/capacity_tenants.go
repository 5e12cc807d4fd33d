package rca

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/placement"
)

// tenants numbers who could have to leave: pods, and gangs as a whole.
type tenants struct {
	asker *Asker
	known map[*corev1.Pod]int
	list  []placement.Tenant
	pods  [][]*corev1.Pod // by tenant
	above int             // pods that only their priority keeps
}

func newTenants(a *Asker) *tenants {
	return &tenants{asker: a, known: map[*corev1.Pod]int{}}
}

// of is the tenant of a pod, a negative number for one that may not leave.
func (t *tenants) of(p *corev1.Pod) int {
	if id, ok := t.known[p]; ok {
		return id
	}
	pods := t.asker.world.together(p)
	id := len(t.list)
	tenant, stays := t.tenant(pods)
	if stays {
		id = -1
	} else {
		t.list, t.pods = append(t.list, tenant), append(t.pods, pods)
	}
	for _, p := range pods {
		t.known[p] = id
	}
	return id
}

// anew numbers from 0 again.
func (t *tenants) anew() *tenants {
	return newTenants(t.asker)
}

// holding is the tenant who holds a slot; a negative number when nobody knows who
// that is.
func (t *tenants) holding(s placement.Slot) int {
	p := t.asker.world.state.Pod(s.Holder.Namespace, s.Holder.Pod)
	if s.Unknown || p == nil {
		return -1
	}
	return t.of(p)
}

// tenant sums a gang up; true when one of its pods may not leave.
func (t *tenants) tenant(pods []*corev1.Pod) (placement.Tenant, bool) {
	out := placement.Tenant{Priority: int64(corev1helpers.PodPriority(pods[0]))}
	guards := map[int]int{}
	for _, p := range pods {
		guarding := t.asker.world.pdbs.guarding(p)
		// The eviction API refuses a pod that more than one budget guards
		// (pkg/registry/core/pod/storage/eviction.go).
		if !t.asker.mayLeave(p) || len(guarding) > 1 {
			if int64(corev1helpers.PodPriority(p)) > t.asker.prio {
				t.above++
			}
			return out, true
		}
		out.Priority = max(out.Priority, int64(corev1helpers.PodPriority(p)))
		if at := p.Status.StartTime; at != nil {
			// API times are whole seconds, so rounding keeps the order.
			out.Lost += int64(max(0, t.asker.world.state.Now.Sub(at.Time)).Seconds())
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

func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
