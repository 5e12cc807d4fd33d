package causes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
)

// ownedBy gives a pod an owner of a kind, which is there.
func (w *world) ownedBy(kind string) func(*corev1.Pod) {
	meta := metav1.ObjectMeta{Namespace: "ml", Name: "set", UID: "set"}
	w.DaemonSets, w.StatefulSets = []*appsv1.DaemonSet{{ObjectMeta: meta}}, []*appsv1.StatefulSet{{ObjectMeta: meta}}
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "set", UID: "set", Controller: new(true)}}
	}
}

// madeFor pins a pod to a node as the DaemonSet controller does.
func madeFor(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	}
}

func onHost(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": name} }
}

// withVolume gives a pod a claim of its own, whose volume is in a zone.
func (w *world) withVolume(zone string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		name := "data-" + p.Name
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
		w.PVCs = append(w.PVCs, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + p.Name}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
		w.PVs = append(w.PVs, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + p.Name}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}}})
	}
}

// Pods of one incident that are meant for different nodes: each node is told of by its own.
func TestPodsMeantForNodes(t *testing.T) {
	port := func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 9400}} }
	zoned := func(w *world, name, zone string) {
		w.gpuNode(sim.Node{Name: name, Model: "L4", GPUs: 1, Labels: map[string]string{"zone": zone, "kubernetes.io/hostname": name}})
	}
	rows{
		"a DaemonSet's, each with a reason of its node's": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.gpuNode(l4("n2", 1))
			w.gpuNode(l4("n3", 1))
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("g", "n2", "", 0, port)
			w.pod("r", "n3", "nvidia.com/gpu", 1, w.ownedBy("DaemonSet"), port)
			w.pod("v", "", "nvidia.com/gpu", 1, w.ownedBy("DaemonSet"), madeFor("n2"), port)
			w.pod("w", "", "nvidia.com/gpu", 1, w.ownedBy("DaemonSet"), madeFor("n1"), port)
		}, `
GPUsInUse proven n1,n3: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
  Node/n3: allocatable nvidia.com/gpu=1, requested 1
NodeSelectorMismatch proven n3: no waiting pod of it is meant to go there
  Node/n3: no waiting pod of DaemonSet/set is meant for it
Unknown proven n2,n3: its host port 9400/TCP is taken there
  Pod/ml/g: has host port 9400/TCP on n2
  Pod/ml/r: has host port 9400/TCP on n3
`},
		"a DaemonSet's, and no labels of its template on theirs": {func(w *world) {
			selects := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"gpu": "yes"} }
			w.gpuNode(sim.Node{Name: "n1", Model: "L4", GPUs: 1, Labels: map[string]string{"gpu": "yes"}})
			w.gpuNode(l4("n2", 1))
			w.gpuNode(l4("n3", 1))
			w.pod("v", "", "nvidia.com/gpu", 1, w.ownedBy("DaemonSet"), madeFor("n2"), selects)
			w.pod("w", "", "nvidia.com/gpu", 1, w.ownedBy("DaemonSet"), madeFor("n3"), selects)
		}, `
NodeSelectorMismatch proven n1,n2,n3: selector gpu=yes does not match (2 nodes); no waiting pod of it is meant to go there (n1)
  Node/n1: no waiting pod of DaemonSet/set is meant for it
  Node/n2: label gpu is absent, yes was asked
  Node/n3: label gpu is absent, yes was asked
`},
		"a DaemonSet's of a node that is gone": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("w", "", "nvidia.com/gpu", 1, w.ownedBy("DaemonSet"), madeFor("n9"))
		}, `
NodeSelectorMismatch proven n1: selector metadata.name=n9 does not match
  Node/n1: label metadata.name is "n1", n9 was asked
`},
		"replicas whose volumes are in different zones": {func(w *world) {
			for _, zone := range []string{"a", "b", "c"} {
				zoned(w, "n"+zone, zone)
			}
			w.pod("h", "na", "nvidia.com/gpu", 1)
			w.pod("g", "nb", "nvidia.com/gpu", 1)
			w.pod("v", "", "nvidia.com/gpu", 1, w.ownedBy("StatefulSet"), w.withVolume("b"))
			w.pod("w", "", "nvidia.com/gpu", 1, w.ownedBy("StatefulSet"), w.withVolume("a"))
		}, `
GPUsInUse proven na,nb: all whole GPUs are held
  Node/na: allocatable nvidia.com/gpu=1, requested 1
  Node/nb: allocatable nvidia.com/gpu=1, requested 1
VolumeConflict proven nc: its volume cannot be had there: node(s) didn't match PersistentVolume's node affinity
  Node/nc: node(s) didn't match PersistentVolume's node affinity
  PersistentVolumeClaim/ml/data-v: is Bound, volume pv-v
`},
		"replicas whose volumes are in one zone": {func(w *world) {
			zoned(w, "na", "a")
			zoned(w, "nb", "b")
			w.pod("h", "na", "nvidia.com/gpu", 1)
			w.pod("v", "", "nvidia.com/gpu", 1, w.ownedBy("StatefulSet"), w.withVolume("a"))
			w.pod("w", "", "nvidia.com/gpu", 1, w.ownedBy("StatefulSet"), w.withVolume("a"))
		}, `
GPUsInUse proven na: all whole GPUs are held
  Node/na: allocatable nvidia.com/gpu=1, requested 1
VolumeConflict proven nb: its volume cannot be had there: node(s) didn't match PersistentVolume's node affinity
  Node/nb: node(s) didn't match PersistentVolume's node affinity
  PersistentVolumeClaim/ml/data-v: is Bound, volume pv-v
`},
		"each with a host of its own, and a selector that all have": {func(w *world) {
			pool := func(p *corev1.Pod) { p.Spec.NodeSelector["zone"] = "a" }
			zoned(w, "n1", "a")
			zoned(w, "n2", "a")
			zoned(w, "n3", "a")
			zoned(w, "n4", "b")
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("g", "n2", "nvidia.com/gpu", 1)
			w.pod("v", "", "nvidia.com/gpu", 1, w.ownedBy("StatefulSet"), onHost("n2"), pool)
			w.pod("w", "", "nvidia.com/gpu", 1, w.ownedBy("StatefulSet"), onHost("n1"), pool)
		}, `
GPUsInUse proven n1,n2: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
  Node/n2: allocatable nvidia.com/gpu=1, requested 1
NodeSelectorMismatch proven n3,n4: no waiting pod of it is meant to go there
  Node/n3: no waiting pod of StatefulSet/set is meant for it
  Node/n4: no waiting pod of StatefulSet/set is meant for it
`},
		"both for one host": {func(w *world) {
			zoned(w, "n1", "a")
			zoned(w, "n2", "a")
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("v", "", "nvidia.com/gpu", 1, w.ownedBy("StatefulSet"), onHost("n1"))
			w.pod("w", "", "nvidia.com/gpu", 1, w.ownedBy("StatefulSet"), onHost("n1"))
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
NodeSelectorMismatch proven n2: selector kubernetes.io/hostname=n1 does not match
  Node/n2: label kubernetes.io/hostname is "n2", n1 was asked
`},
	}.run(t)
}
