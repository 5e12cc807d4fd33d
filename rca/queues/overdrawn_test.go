package queues

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/rcatest"
)

// A queue that may hold more than the queue above it, or than all nodes, breaks the tree of Volcano's queues. It is told of a group
// that waits without another reason, and only where queues stand above each other.
func TestQueuesThatHoldMoreThanThereIs(t *testing.T) {
	const below = ": with such a tree of queues schedulers of older versions take nobody's work, and say it in their log alone"
	const all = "likely: Volcano's Queue a may hold 16 nvidia.com/gpu, and all nodes together have less" + below
	for name, tc := range map[string]struct {
		a, dept, team string // of GPUs; empty: not named
		parent        string // of team
		phase, says   string
		want, short   string
	}{
		"one GPU is lost":           {"16", "8", "4", "dept", "Pending", "pod group is not ready", all, "n2"},
		"all of them":               {"15", "8", "4", "dept", "Pending", "pod group is not ready", "", ""},
		"more than above":           {"8", "4", "6", "dept", "Pending", "pod group is not ready", "likely: Volcano's Queue team may hold 6 nvidia.com/gpu, and Queue dept above it only 4" + below, ""},
		"above is not named":        {"8", "", "16", "dept", "Pending", "pod group is not ready", "likely: Volcano's Queue team may hold 16 nvidia.com/gpu, and all nodes together have less" + below, "n2"},
		"the queue above is gone":   {"8", "", "16", "gone", "Pending", "pod group is not ready", "", ""},
		"queues beside each other":  {"16", "8", "4", "root", "Pending", "pod group is not ready", "", ""},
		"it was let in":             {"16", "8", "4", "dept", "Inqueue", "pod group is not ready", "", ""},
		"its queue is full":         {"16", "8", "4", "dept", "Pending", "queue resource quota insufficient", "", ""},
		"nothing is said of it yet": {"16", "8", "4", "dept", "Pending", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				for i, offers := range []string{"8", "7"} {
					w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1)}, Status: corev1.NodeStatus{Capacity: rcatest.List(gpu, "8"), Allocatable: rcatest.List(gpu, offers)}})
				}
				queue := func(name, parent, gpus string) *unstructured.Unstructured {
					spec := map[string]any{"parent": parent}
					if gpus != "" {
						spec["capability"] = map[string]any{gpu: gpus}
					}
					return object("", name, map[string]any{"spec": spec})
				}
				w.Queues.Volcano = []*unstructured.Unstructured{queue("team", tc.parent, tc.team), queue("a", "", tc.a), queue("dept", "root", tc.dept), object("", "root", map[string]any{"spec": map[string]any{"capability": map[string]any{gpu: "99"}}})}
				group := map[string]any{"spec": map[string]any{"queue": "team"}, "status": map[string]any{"phase": tc.phase}}
				w.PodGroups.Volcano = []*unstructured.Unstructured{object("a", "train", group)}
				w.Wait.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"}
				if w.Wait.Spec.SchedulerName = "volcano"; tc.says != "" {
					refused(w, "volcano", "Unschedulable", tc.says)
				}
			})
			got, short := "", ""
			if q := (tree{c}).broken(); q != nil {
				got, short = fmt.Sprintf("%s: %s", q.Certainty, q.Says), q.Over.Short
			}
			if got != tc.want || short != tc.short {
				t.Errorf("%q, %q; want %q, %q", got, short, tc.want, tc.short)
			}
		})
	}
}

// Room that the default scheduler's filters find is room for a pod that begins alone.
func TestRoomForOneAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		fits    bool
		members any
		want    bool
	}{
		"none":              {false, int64(1), false},
		"alone":             {true, int64(1), true},
		"as many as may be": {true, nil, true},
		"with another":      {true, int64(2), false},
		"no number":         {true, "two", false},
	} {
		c := open(t, func(w *rcatest.World) {
			spec := map[string]any{}
			if tc.members != nil {
				spec["minMember"] = tc.members
			}
			w.PodGroups.Volcano = []*unstructured.Unstructured{object("a", "train", map[string]any{"spec": spec})}
			w.Wait.Spec.SchedulerName = "volcano"
			w.Wait.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"}
		})
		if c.Fits = tc.fits; HasRoom(c) != tc.want {
			t.Errorf("%s: %v", name, !tc.want)
		}
	}
	c := open(t, func(*rcatest.World) {})
	if c.Fits = true; !HasRoom(c) {
		t.Error("of a pod without a group")
	}
}
