package queues

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/rcatest"
)

// Room that objects show and a scheduler does not find may be kept for a group whose members wait for each
// other; how sure that is depends on whether it has refused them.
func TestRoomKeptForAGroup(t *testing.T) {
	const words = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
	const says = "bridge finds no room, though nodes have it by what is bound to them: waiting members of PodGroup/a/ddp may hold it in its memory\nPod/a/w: bridge says Unschedulable: " + words
	const quiet = "\nPod/a/m: of that group, has no node, and its scheduler has not refused it"
	for name, tc := range map[string]struct {
		edit func(w *rcatest.World, member *corev1.Pod)
		full bool
		want string
	}{
		"its members are counted": {nil, false, "likely: " + says + quiet},
		"another group is larger": {func(w *rcatest.World, m *corev1.Pod) {
			small := m.DeepCopy()
			small.Name, small.UID, small.Labels = "a", "a", map[string]string{"scheduling.x-k8s.io/pod-group": "small"}
			second := m.DeepCopy()
			second.Name, second.UID = "m2", "m2"
			w.Pods = append(w.Pods, second, small)
		}, false, "likely: " + says + quiet},
		"one was refused once": {func(_ *rcatest.World, m *corev1.Pod) {
			m.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
		}, false, "possible: " + says},
		"no node has room":       {nil, true, ""},
		"of another scheduler":   {func(_ *rcatest.World, m *corev1.Pod) { m.Spec.SchedulerName = "other" }, false, ""},
		"it has a node":          {func(_ *rcatest.World, m *corev1.Pod) { m.Spec.NodeName = "n" }, false, ""},
		"of no group":            {func(_ *rcatest.World, m *corev1.Pod) { m.Labels = nil }, false, ""},
		"of its own group":       {func(w *rcatest.World, _ *corev1.Pod) { w.Wait.Labels["scheduling.x-k8s.io/pod-group"] = "ddp" }, false, ""},
		"it says something else": {func(w *rcatest.World, _ *corev1.Pod) { w.Wait.Status.Conditions[0].Message = "no luck" }, false, ""},
		"a scheduler of own code": {func(w *rcatest.World, m *corev1.Pod) {
			w.Wait.Spec.SchedulerName, m.Spec.SchedulerName = "volcano", "volcano"
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				refused(w, "bridge", "Unschedulable", words)
				m := w.Wait.DeepCopy()
				m.Name, m.UID, m.Labels, m.Status.Conditions = "m", "m", map[string]string{"scheduling.x-k8s.io/pod-group": "ddp"}, nil
				w.Pods = append(w.Pods, m)
				if tc.edit != nil {
					tc.edit(w, m)
				}
			})
			c.Fits = !tc.full
			got := ""
			if a := c.Assumed(); a != nil {
				w, _ := c.Refused()
				got = told(a.Finding(w, c.SchedulerName()))
			}
			if got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
