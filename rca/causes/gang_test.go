package causes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/rcatest"
)

func podGroup(namespace, name string, least any, path ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}}}
	if err := unstructured.SetNestedField(u.Object, least, path...); err != nil {
		panic(err)
	}
	return u
}

func member(p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/pod-group"] = "train" }

// Groups that are scheduled whole or not at all.
func TestGangRules(t *testing.T) {
	gang := func(w *world, least int64) {
		w.PodGroups.Plugins = append(w.PodGroups.Plugins, podGroup("other", "train", int64(9), "spec", "minMember"), podGroup("ml", "train", least, "spec", "minMember"), podGroup("ml", "else", int64(9), "spec", "minMember"))
	}
	rows{
		"members that do not exist": {func(w *world) {
			w.gpuNode(l4("n1", 4))
			gang(w, 4)
			w.pod("r", "n1", "nvidia.com/gpu", 1, member)
			w.pod("b", "n1", "nvidia.com/gpu", 1, member).Status.Phase = corev1.PodPending
			w.pod("gone", "n1", "nvidia.com/gpu", 1, member).DeletionTimestamp = &metav1.Time{Time: rcatest.Noon}
			w.pod("done", "", "nvidia.com/gpu", 1, member).Status.Phase = corev1.PodSucceeded
			w.pod("theirs", "", "nvidia.com/gpu", 2, member, of("other"))
			w.pod("alone", "", "nvidia.com/gpu", 3)
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, ``},
		"members that do not fit together": {func(w *world) {
			w.gpuNode(l4("n1", 3))
			gang(w, 2)
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("v", "", "nvidia.com/gpu", 2, member)
			w.pod("w", "", "nvidia.com/gpu", 2, member)
		}, ``},
		"members that are not alike may fit in another order": {func(w *world) {
			w.gpuNode(l4("n1", 3))
			gang(w, 3)
			w.pod("big", "", "nvidia.com/gpu", 3, member)
			w.pod("mid", "", "nvidia.com/gpu", 2, member)
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, ``},
		"pods were not read, so perhaps they exist": {func(w *world) {
			w.gpuNode(l4("n1", 3))
			gang(w, 2)
			w.Unread["Pod"] = "some were left out"
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, ``},
		"where not even one fits, what keeps it is told": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			gang(w, 2)
			w.pod("v", "", "nvidia.com/gpu", 2, member)
			w.pod("w", "", "nvidia.com/gpu", 2, member)
		}, ``},
		"a gang that fits waits for something else": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			gang(w, 2)
			w.pod("v", "", "nvidia.com/gpu", 1, member)
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, ``},
		"one is no gang": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			gang(w, 1)
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, ``},
		"one that has its least is complete": {func(w *world) {
			w.gpuNode(l4("n1", 3))
			gang(w, 2)
			w.pod("u", "n1", "nvidia.com/gpu", 1, member)
			w.pod("v", "n1", "nvidia.com/gpu", 1, member)
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, ``},
		"a group that does not exist is waited for": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				name := "train"
				p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
			})
		}, ``},
		"groups that were not read are not gone": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.Unread["PodGroup.scheduling.k8s.io"] = "forbidden"
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				name := "train"
				p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
			})
		}, ``},
		"of others their schedulers' words are known": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("w", "", "nvidia.com/gpu", 1, by("volcano"), func(p *corev1.Pod) { p.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"} })
			for _, m := range []string{"pod group is not ready, 1 Pending", "3/4 tasks in gang unschedulable"} {
				for _, of := range []string{"train", "else"} {
					w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "PodGroup", Namespace: "ml", Name: of}, Reason: "Unschedulable", Message: m, ReportingController: "volcano"})
				}
			}
		}, ``},
		"words that are not of the gang": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("w", "", "nvidia.com/gpu", 1, by("volcano"), func(p *corev1.Pod) { p.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"} })
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "PodGroup", Namespace: "ml", Name: "train"}, Reason: "Unschedulable", Message: "no quota", ReportingController: "volcano"})
		}, ``},
		"a gang that is not ready": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("w", "", "nvidia.com/gpu", 1, by("kai-scheduler"), func(p *corev1.Pod) { p.Annotations = map[string]string{"pod-group-name": "train"} })
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "PodGroup", Namespace: "ml", Name: "train"}, Reason: "NotReady", Message: "waiting for 2 pods", ReportingController: "kai-scheduler"})
		}, ``},
	}.run(t)
}

// Whom room is made for, and that it is for all at once.
func TestGangVictims(t *testing.T) {
	w := newWorld()
	w.gpuNode(l4("n1", 4))
	w.PodGroups.Plugins = append(w.PodGroups.Plugins, podGroup("ml", "train", int64(2), "spec", "minMember"))
	for _, name := range []string{"a", "b"} {
		w.pod(name, "n1", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: &yes}}
		})
	}
	for _, name := range []string{"u", "v", "w"} {
		w.pod(name, "", "nvidia.com/gpu", 2, member)
	}
	g := w.open(t, "w").Gang
	if g == nil || g.Fit != 1 || !g.exact || g.stops != "Insufficient nvidia.com/gpu on 1 node" || g.Lacks() != 2 || g.Missing() != 0 || !g.Short() || len(g.Victims) != 2 {
		t.Errorf("%+v", g)
	}
}
