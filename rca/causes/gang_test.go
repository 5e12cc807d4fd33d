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
		}, `
GangIncomplete proven : 3 of 4 members of its gang exist
  PodGroup/ml/train: at least 4 together (scheduling.x-k8s.io): 3 exist, 2 have a node, 1 run
`},
		"members that do not fit together": {func(w *world) {
			w.gpuNode(l4("n1", 3))
			gang(w, 2)
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("v", "", "nvidia.com/gpu", 2, member)
			w.pod("w", "", "nvidia.com/gpu", 2, member)
		}, `
GangIncomplete proven : 1 of 2 members of its gang fit together
  PodGroup/ml/train: at least 2 together (scheduling.x-k8s.io): 2 exist, 0 have a node, 0 run
  PodGroup/ml/train: placed one after another on a copy, 1 has room; the next is stopped by: Insufficient nvidia.com/gpu on 1 node
`},
		"members that are not alike may fit in another order": {func(w *world) {
			w.gpuNode(l4("n1", 3))
			gang(w, 3)
			w.pod("big", "", "nvidia.com/gpu", 3, member)
			w.pod("mid", "", "nvidia.com/gpu", 2, member)
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, `
GangIncomplete likely : 2 of 3 members of its gang fit together
  PodGroup/ml/train: at least 3 together (scheduling.x-k8s.io): 3 exist, 0 have a node, 0 run
  PodGroup/ml/train: placed one after another on a copy, 2 have room; the next is stopped by: Insufficient nvidia.com/gpu
`},
		"pods were not read, so perhaps they exist": {func(w *world) {
			w.gpuNode(l4("n1", 3))
			gang(w, 2)
			w.Unread["Pod"] = "some were left out"
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, `
GangIncomplete likely : 1 of 2 members of its gang exist
  PodGroup/ml/train: at least 2 together (scheduling.x-k8s.io): 1 exist, 0 have a node, 0 run
`},
		"where not even one fits, what keeps it is told": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			gang(w, 2)
			w.pod("v", "", "nvidia.com/gpu", 2, member)
			w.pod("w", "", "nvidia.com/gpu", 2, member)
		}, `
GPURequestTooLarge proven n1: has fewer GPUs than one pod asks for
  Node/n1: capacity nvidia.com/gpu=1, one pod asks for 2
`},
		"a gang that fits waits for something else": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			gang(w, 2)
			w.pod("v", "", "nvidia.com/gpu", 1, member)
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, `
Unknown possible : the scheduler's filters accept n1 now; ruled out: every filter on it
  Pod/ml/w: waits, although n1 would take it
`},
		"one is no gang": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			gang(w, 1)
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, `
Unknown possible : the scheduler's filters accept n1 now; ruled out: every filter on it
  Pod/ml/w: waits, although n1 would take it
`},
		"one that has its least is complete": {func(w *world) {
			w.gpuNode(l4("n1", 3))
			gang(w, 2)
			w.pod("u", "n1", "nvidia.com/gpu", 1, member)
			w.pod("v", "n1", "nvidia.com/gpu", 1, member)
			w.pod("w", "", "nvidia.com/gpu", 1, member)
		}, `
Unknown possible : the scheduler's filters accept n1 now; ruled out: every filter on it
  Pod/ml/w: waits, although n1 would take it
`},
		"a group that does not exist is waited for": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				name := "train"
				p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
			})
		}, `
GangIncomplete likely : its PodGroup train does not exist
  Pod/ml/w: spec.schedulingGroup names PodGroup train
`},
		"groups that were not read are not gone": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.Unread["PodGroup.scheduling.k8s.io"] = "forbidden"
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				name := "train"
				p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
			})
		}, `
Unknown possible : the scheduler's filters accept n1 now; ruled out: every filter on it
  Pod/ml/w: waits, although n1 would take it
`},
		"of others their schedulers' words are known": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("w", "", "nvidia.com/gpu", 1, by("volcano"), func(p *corev1.Pod) { p.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"} })
			for _, m := range []string{"pod group is not ready, 1 Pending", "3/4 tasks in gang unschedulable"} {
				for _, of := range []string{"train", "else"} {
					w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "PodGroup", Namespace: "ml", Name: of}, Reason: "Unschedulable", Message: m, ReportingController: "volcano"})
				}
			}
		}, `
GangIncomplete possible : its scheduler says that the gang is not complete
  PodGroup/ml/train: volcano says Unschedulable: pod group is not ready, 1 Pending
`},
		"words that are not of the gang": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("w", "", "nvidia.com/gpu", 1, by("volcano"), func(p *corev1.Pod) { p.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"} })
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "PodGroup", Namespace: "ml", Name: "train"}, Reason: "Unschedulable", Message: "no quota", ReportingController: "volcano"})
		}, `
SchedulerRefused likely : volcano decides, and says Unschedulable: no quota
  PodGroup/ml/train: volcano says Unschedulable: no quota
`},
		"a gang that is not ready": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("w", "", "nvidia.com/gpu", 1, by("kai-scheduler"), func(p *corev1.Pod) { p.Annotations = map[string]string{"pod-group-name": "train"} })
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "PodGroup", Namespace: "ml", Name: "train"}, Reason: "NotReady", Message: "waiting for 2 pods", ReportingController: "kai-scheduler"})
		}, `
GangIncomplete possible : its scheduler says that the gang is not complete
  PodGroup/ml/train: kai-scheduler says NotReady: waiting for 2 pods
`},
	}.run(t)
}
