package view

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

// Stops are the pods that stop because an action makes its target again, or rolls it: those
// of the target that hold a node. They are what Action.Stops has, by uid, in the order of the
// state. None for an action that does neither.
func Stops(st *cluster.State, a diagnosis.Action) []*corev1.Pod {
	if !restarts(st, a) {
		return nil
	}
	var out []*corev1.Pod
	for _, p := range st.Pods {
		if p.Namespace == a.Target.Namespace && HoldsNode(p) && ofTarget(st, p, a.Target) && reached(st, p, a.Target) {
			out = append(out, p)
		}
	}
	return out
}

// HoldsNode says that a pod is on a node, has not ended and is not about to: who stops it
// takes something away.
func HoldsNode(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && !Ended(p) && p.DeletionTimestamp == nil
}

// restarts says whether the action stops pods of its target: it is made again, or its
// controller replaces the pods of a template that was changed. A ReplicaSet does not, nor
// does what was told to leave that to people.
func restarts(st *cluster.State, a diagnosis.Action) bool {
	if a.Verb == diagnosis.VerbRecreate {
		return true
	}
	var patch struct {
		Spec struct {
			Template json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	if a.Verb != diagnosis.VerbPatch || json.Unmarshal(a.Patch, &patch) != nil || len(patch.Spec.Template) == 0 {
		return false
	}
	owner, _ := st.Owner(a.Target.Kind, a.Target.Namespace, a.Target.Name)
	switch o := owner.(type) {
	case *appsv1.Deployment:
		return !o.Spec.Paused
	case *appsv1.StatefulSet:
		return o.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
	case *appsv1.DaemonSet:
		return o.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
	}
	return false
}

// ofTarget says whether the pod is the target, or one that it controls: of this name and uid,
// for a dump written by hand has objects without one.
func ofTarget(st *cluster.State, p *corev1.Pod, t diagnosis.Target) bool {
	if p.Namespace != t.Namespace {
		return false
	}
	if t.Kind == "Pod" {
		return p.Name == t.Name && string(p.UID) == t.UID
	}
	by := metav1.GetControllerOfNoCopy(p)
	if by == nil {
		return false
	}
	if t.Kind != "Deployment" {
		return by.Kind == t.Kind && by.Name == t.Name && string(by.UID) == t.UID
	}
	set, known := st.Owner(incident.OwnerKind(by), p.Namespace, by.Name)
	if !known || set.GetUID() != by.UID {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(set)
	return owner != nil && owner.Name == t.Name && string(owner.UID) == t.UID
}

// reached says whether a rollout comes to the pod: not to those of a StatefulSet below its
// partition.
func reached(st *cluster.State, p *corev1.Pod, t diagnosis.Target) bool {
	owner, _ := st.Owner(t.Kind, t.Namespace, t.Name)
	set, is := owner.(*appsv1.StatefulSet)
	return !is || Ordinal(p) >= FirstRolled(set)
}

// Ready says that the pod's condition says so.
func Ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// MayLack is how many pods of the set may be away while its controller rolls it, and whether
// that controller has such a bound: one that has, as all have from Kubernetes 1.37 on (gate
// MaxUnavailableStatefulSet), writes it into each set; every other one replaces one pod after
// the other, from the highest ordinal on (getStatefulSetMaxUnavailable and updateStatefulSet
// in pkg/controller/statefulset, SetDefaults_StatefulSet in pkg/apis/apps/v1, 1.37.1).
func MayLack(set *appsv1.StatefulSet) (pods int, bounded bool) {
	r := set.Spec.UpdateStrategy.RollingUpdate
	if r == nil || r.MaxUnavailable == nil {
		return 1, false
	}
	pods, _ = intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, int(ptr.Deref(set.Spec.Replicas, 1)), false) //nolint:errcheck // the API server takes no others
	return max(1, pods), true
}

// FirstRolled is the lowest ordinal that a new template of the set reaches; its partition
// is counted from its first one (stateful_set_utils.go, newVersionedStatefulSetPod).
func FirstRolled(set *appsv1.StatefulSet) int {
	first := FirstOrdinal(set)
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil {
		first += int(ptr.Deref(r.Partition, 0))
	}
	return first
}

// FirstOrdinal is that of the set's first pod: 0, or what it says.
func FirstOrdinal(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals != nil {
		return int(set.Spec.Ordinals.Start)
	}
	return 0
}

// Ordinal is the number at the end of a StatefulSet's pod's name.
func Ordinal(p *corev1.Pod) int {
	n, _ := strconv.Atoi(p.Name[strings.LastIndexByte(p.Name, '-')+1:]) //nolint:errcheck // else it is no pod of the set's
	return n
}
