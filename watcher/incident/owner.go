package incident

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are Kubernetes' own kinds that make pods, or own what does. Everybody who walks from a
// pod to its topmost owner reads these, and beside them only the kinds that watcher/owners is
// told of: were one read by one and not by another, the two would not mean the same workload.
var Kinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
}

// OwnKind says whether a kind is one of Kinds.
func OwnKind(kind string) bool {
	return slices.ContainsFunc(Kinds, func(k schema.GroupVersionKind) bool { return k.Kind == kind })
}

// KindOf is how a kind is named in a Ref: by its name alone where it is Kubernetes' own, else
// with its API group (Job.batch.volcano.sh), for others have kinds of the same names.
func KindOf(gk schema.GroupKind) string {
	if gk.Group == "" || slices.ContainsFunc(Kinds, func(k schema.GroupVersionKind) bool { return k.Group == gk.Group }) {
		return gk.Kind
	}
	return gk.Kind + "." + gk.Group
}

// OwnerKind is the kind of an owner as a Ref names it.
func OwnerKind(o *metav1.OwnerReference) string {
	switch o.APIVersion {
	case "", "v1", "apps/v1", "batch/v1": // as nearly every pod's, of which there may be very many
		return o.Kind
	}
	return KindOf(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind())
}

// Lookup finds an owner object by its kind, as a Ref names it; false when it does not exist or
// was not read. What is of no namespace is found in each.
type Lookup func(kind, namespace, name string) (metav1.Object, bool)

// Topmost is the last of a pod's Owners.
func Topmost(pod *corev1.Pod, lookup Lookup) Ref {
	owners := Owners(pod, lookup)
	return owners[len(owners)-1]
}

// GroupLabel names, on pods that nobody owns, the group that Kueue admits as one: its Workload has
// that name (pkg/controller/jobs/pod in kubernetes-sigs/kueue).
const GroupLabel = "kueue.x-k8s.io/pod-group-name"

// Owners follows the controller references of a pod as far as they can be read:
// the pod itself, its ReplicaSet, its Deployment; or its Job and CronJob; and so
// on. An owner that cannot be found ends the chain with its name; owners in a
// circle end it too. Bare pods of one group are their Workload's.
func Owners(pod *corev1.Pod, lookup Lookup) []Ref {
	chain, _ := Walk(pod, lookup)
	return chain
}

// Walk is Owners, and the reference at which the walk ended because that owner was not found;
// nil where nothing owns the last.
func Walk(pod *corev1.Pod, lookup Lookup) (chain []Ref, lost *metav1.OwnerReference) {
	chain = []Ref{{"Pod", pod.Namespace, pod.Name}}
	var at metav1.Object = pod
	for {
		owner := controllerOf(at)
		if owner == nil {
			if group := pod.Labels[GroupLabel]; group != "" && at == metav1.Object(pod) {
				chain = append(chain, Ref{KindOf(KueueWorkload), pod.Namespace, group})
			}
			return chain, nil
		}
		ref := ownerRef(owner, pod.Namespace)
		circle := slices.Contains(chain, ref)
		if chain = append(chain, ref); circle {
			return chain, nil
		}
		next, ok := lookup(ref.Kind, ref.Namespace, ref.Name)
		if !ok {
			return chain, owner
		}
		at = next
	}
}

// controllerOf is what controls an object; a node, which mirrors a pod, is nobody.
func controllerOf(o metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind == "Node" {
		return nil
	}
	return owner
}

func ownerRef(o *metav1.OwnerReference, namespace string) Ref {
	return Ref{OwnerKind(o), namespace, o.Name}
}
