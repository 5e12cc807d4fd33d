package live

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// OnChange calls changed when something that diagnoses rely on is not as it was: with the
// namespace whose incidents that concerns, empty for all. What heartbeats and counters
// write concerns nobody, nor do Events, nor pods that wait: an incident tells of those. It
// is called from several goroutines until the Follower is closed.
func (f *Follower) OnChange(changed func(namespace string)) error {
	f.mu.Lock()
	informers := maps.Clone(f.informers)
	f.mu.Unlock()
	for name, in := range informers {
		k := f.kindNamed(name)
		if k.Name == "Event" {
			continue
		}
		tell := func(old, now any) {
			before, _ := typed(k, old)
			after, _ := typed(k, now)
			if before == nil && after == nil {
				return // an end that nobody saw is told by what is listed next
			}
			if namespace, concerns := concerns(k, before, after); concerns {
				changed(namespace)
			}
		}
		_, err := in.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(o any, first bool) {
				if !first {
					tell(nil, o)
				}
			},
			UpdateFunc: tell,
			DeleteFunc: func(o any) {
				if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = last.Obj
				}
				tell(o, nil)
			},
		})
		if err != nil {
			return fmt.Errorf("follow changes of %s: %w", k, err)
		}
	}
	return nil
}

// concerns says whose diagnoses a change concerns, if anybody's. What came has no before,
// what is gone no after.
func concerns(k *cluster.Kind, before, after cluster.Object) (namespace string, yes bool) {
	one := after
	if one == nil {
		one = before
	}
	switch t := one.(type) {
	case *corev1.Pod:
		return "", podConcerns(as[*corev1.Pod](before), as[*corev1.Pod](after))
	case *corev1.Node:
		return "", before == nil || after == nil || !sameNode(before.(*corev1.Node), after.(*corev1.Node))
	case *nodeprobe.NodeGeometry:
		return "", before == nil || after == nil || !sameReport(before.(*nodeprobe.NodeGeometry), after.(*nodeprobe.NodeGeometry))
	case *appsv1.DaemonSet: // a device plugin's, perhaps
		return "", before == nil || after == nil || t.Generation != before.GetGeneration() || t.Status.NumberReady != before.(*appsv1.DaemonSet).Status.NumberReady
	}
	if before != nil && after != nil && before.GetResourceVersion() == after.GetResourceVersion() {
		return "", false // it was listed again
	}
	if o, is := one.(*metav1.PartialObjectMetadata); is { // who owns it counts, not what it is at
		return o.Namespace, before == nil || after == nil || !equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
	}
	makes := incident.OwnKind(k.Name)
	if makes && before != nil && after != nil && before.GetGeneration() == after.GetGeneration() {
		return "", false // it counts its pods
	}
	if makes || own[k.Name] {
		return one.GetNamespace(), true
	}
	return "", true
}

// own are kinds that concern the pods of their namespace only, as those do that make pods, whose
// status follows these. Everything else may be in everybody's way: a claim holds a device, a
// budget a pod.
var own = map[string]bool{"ResourceQuota": true, "LimitRange": true, "PersistentVolumeClaim": true, "ResourceClaimTemplate": true}

func as[T any](o cluster.Object) T {
	t, _ := o.(T)
	return t
}

// podConcerns: pods that have a node hold what others wait for.
func podConcerns(before, after *corev1.Pod) bool {
	if before == nil || after == nil {
		return before != nil && before.Spec.NodeName != "" || after != nil && after.Spec.NodeName != ""
	}
	return before.Spec.NodeName != after.Spec.NodeName || before.Status.NominatedNodeName != after.Status.NominatedNodeName ||
		after.Spec.NodeName != "" && (before.Status.Phase != after.Status.Phase || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			isReady(before.Status) != isReady(after.Status) || !maps.Equal(before.Labels, after.Labels))
}

func isReady(s corev1.PodStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// sameNode compares all but what the kubelet writes to show that it lives.
func sameNode(a, b *corev1.Node) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.Status.Capacity, b.Status.Capacity) && equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable) &&
		equality.Semantic.DeepEqual(standing(a), standing(b))
}

// standing is a node's conditions without their times.
func standing(n *corev1.Node) []corev1.NodeCondition {
	out := make([]corev1.NodeCondition, len(n.Status.Conditions))
	for i, c := range n.Status.Conditions {
		out[i] = corev1.NodeCondition{Type: c.Type, Status: c.Status, Reason: c.Reason}
	}
	return out
}

// sameReport compares what two reports say. One that comes after the last was too old to
// be believed is news, whatever it says.
func sameReport(a, b *nodeprobe.NodeGeometry) bool {
	before, after := a.Report, b.Report
	if after.ObservedAt.Sub(before.ObservedAt.Time) > cluster.MaxReportAge {
		return false
	}
	before.ObservedAt = after.ObservedAt
	return equality.Semantic.DeepEqual(before, after)
}
