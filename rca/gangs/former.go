package gangs

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// Former are the pods that run of other revisions than the one that waits, and stay until it is ready: those of its service,
// whose route stays with them, or of its StatefulSet, which replaces none behind one that is not ready.
func Former(w *view.Cluster, p *corev1.Pod) []*corev1.Pod {
	of, set := view.RevisionOf(p), renewing(w, p)
	if of.Service == "" && set == nil {
		return nil
	}
	former := func(o *corev1.Pod) bool {
		if of.Service == "" {
			return behind(set, o, p)
		}
		r := view.RevisionOf(o)
		return r.Kind == of.Kind && r.Service == of.Service && r.Name != of.Name
	}
	var out []*corev1.Pod
	for _, o := range w.State.Pods {
		if o.Namespace == p.Namespace && o.Spec.NodeName != "" && !view.Ended(o) && o.DeletionTimestamp == nil && former(o) {
			out = append(out, o)
		}
	}
	return out
}

// renewing is the StatefulSet that made the pod by its new revision, and replaces one pod after the other; nil for none
// (kubernetes pkg/controller/statefulset/stateful_set_control.go, rollingUpdateStatefulSet).
func renewing(w *view.Cluster, p *corev1.Pod) *appsv1.StatefulSet {
	by := metav1.GetControllerOfNoCopy(p)
	if by == nil || by.Kind != "StatefulSet" {
		return nil
	}
	owner, _ := w.State.Owner(by.Kind, p.Namespace, by.Name)
	set, ok := owner.(*appsv1.StatefulSet)
	if !ok || set.UID != by.UID || set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.MaxUnavailable != nil && r.MaxUnavailable.String() != "1" {
		return nil
	}
	made, now := p.Labels[appsv1.StatefulSetRevisionLabel], set.Status
	if made == "" || made != now.UpdateRevision || now.CurrentRevision == now.UpdateRevision {
		return nil // it has no other revision
	}
	return set
}

// behind says whether a set replaces this pod of an old revision only once the other is ready: it goes from the highest number down.
func behind(set *appsv1.StatefulSet, old, waits *corev1.Pod) bool {
	by, made := metav1.GetControllerOfNoCopy(old), old.Labels[appsv1.StatefulSetRevisionLabel]
	return by != nil && by.UID == set.UID && made != "" && made != set.Status.UpdateRevision && ordinal(old) >= 0 && ordinal(old) < ordinal(waits)
}

// ordinal is a pod's number in its StatefulSet; -1 for none.
func ordinal(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	if err != nil {
		return -1
	}
	return n
}
