package view

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// Spared names the first pod that an action stops although a PodDisruptionBudget would not
// let it be evicted now, and that budget; empty when there is none. Nobody asks a budget
// before a deletion or a rollout: what it keeps from an eviction, it is to keep from these.
func Spared(st *cluster.State, a diagnosis.Action) string {
	pods := Stops(st, a)
	b, atOnce := newBudgets(st.PDBs), together(st, a, len(pods))
	taken := make([]int, len(b.list))
	for _, p := range pods {
		guards := b.Guarding(p)
		if len(guards) > 1 {
			return fmt.Sprintf("%s/%s (it is guarded by %s and %s, and the Eviction API supports one)", p.Namespace, p.Name, b.list[guards[0]].pdb.Name, b.list[guards[1]].pdb.Name)
		}
		for _, g := range guards {
			pdb := b.list[g].pdb
			if free(pdb, p) {
				continue
			}
			taken[g] = min(taken[g]+1, atOnce)
			if left := int(pdb.Status.DisruptionsAllowed); taken[g] > left || pdb.Status.ObservedGeneration < pdb.Generation {
				return fmt.Sprintf("%s/%s (%s allows %d more)", p.Namespace, p.Name, pdb.Name, left)
			}
		}
	}
	return ""
}

// SparedBy says of actions that a PodDisruptionBudget keeps one of those from stopping who
// would stop by them; empty when none does.
func SparedBy(st *cluster.State, actions []diagnosis.Action) string {
	for _, a := range actions {
		if pod := Spared(st, a); pod != "" {
			return fmt.Sprintf("a PodDisruptionBudget does not allow that %s stops, as it would with a change of %s %s/%s", pod, strings.ToLower(a.Target.Kind), a.Target.Namespace, a.Target.Name)
		}
	}
	return ""
}

// Guarded names the first of some pods that a PodDisruptionBudget would not let be evicted
// now, were it asked, and that budget; empty when there is none.
func (w *Cluster) Guarded(pods []*corev1.Pod) string {
	for _, p := range pods {
		for _, g := range w.Budgets.Guarding(p) {
			if pdb := w.Budgets.list[g].pdb; pdb.Status.DisruptionsAllowed < 1 && !free(pdb, p) {
				return fmt.Sprintf("%s/%s (%s allows 0 more)", p.Namespace, p.Name, pdb.Name)
			}
		}
	}
	return ""
}

// together is how many of the pods are away at the same moment: all that are made again, and
// of a rollout as many as its controller takes at once.
func together(st *cluster.State, a diagnosis.Action, pods int) int {
	owner, _ := st.Owner(a.Target.Kind, a.Target.Namespace, a.Target.Name)
	most, of := new(intstr.FromInt32(1)), 0
	switch o := owner.(type) {
	case *appsv1.Deployment:
		of = int(ptr.Deref(o.Spec.Replicas, 1))
		if o.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
			return pods
		}
		if o.Spec.Strategy.RollingUpdate != nil {
			most = o.Spec.Strategy.RollingUpdate.MaxUnavailable
		}
	case *appsv1.DaemonSet:
		of = int(o.Status.DesiredNumberScheduled)
		if o.Spec.UpdateStrategy.RollingUpdate != nil {
			most = o.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable
		}
	case *appsv1.StatefulSet:
		if o.Spec.UpdateStrategy.Type == appsv1.RecreateStatefulSetStrategyType {
			return pods
		}
		n, _ := MayLack(o)
		return n
	default:
		return pods
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(most, intstr.FromInt32(1)), of, false)
	if err != nil {
		return pods
	}
	return max(1, n)
}

// free says whether the Eviction API lets a pod go without counting it: one that has not
// begun, and one that is not ready where the budget says so
// (pkg/registry/core/pod/storage/eviction.go, 1.37.1).
func free(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodPending {
		return true
	}
	if Ready(p) {
		return false
	}
	if ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
}
