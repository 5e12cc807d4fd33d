package gangs

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unpend/unpend/rca/rcatest"
)

// Groups of a workload work without each other: members of two that are not whole wait for each
// other in vain, and a whole one is in nobody's way but as any other.
func TestGroupsThatAreNotWhole(t *testing.T) {
	const group = "leaderworkerset.sigs.k8s.io/group-index"
	in := func(p *corev1.Pod, of string) *corev1.Pod {
		p.Labels = map[string]string{group: of}
		return p
	}
	alsoWaits := func(w *rcatest.World, name, of string) {
		p := in(w.Wait.DeepCopy(), of)
		p.Name, p.UID = name, types.UID(name)
		w.Pods = append(w.Pods, p)
	}
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		wait int
		want string
	}{
		"leaders hold all": {func(w *rcatest.World) {
			gpus(w, "n", 2)
			in(w.Wait, "0")
			in(member(w, "l0", "n", "1"), "0")
			in(member(w, "l1", "n", "1"), "1")
			alsoWaits(w, "w1", "1")
		}, 2, "proven: groups 0, 1 of it each hold a part of the nvidia.com/gpu that they need and wait for the rest, and none begins before all of its members run"},
		"one beside them is whole": {func(w *rcatest.World) {
			gpus(w, "n", 3)
			in(w.Wait, "0")
			in(member(w, "l0", "n", "1"), "0")
			in(member(w, "l1", "n", "1"), "1")
			in(member(w, "m1", "n", "1"), "1")
		}, 1, "proven: group 0 of it holds a part of the nvidia.com/gpu that it needs and waits for the rest, and does not begin before all of its members run"},
		"all that hold are whole": {func(w *rcatest.World) {
			gpus(w, "n", 2)
			in(w.Wait, "1")
			in(member(w, "l0", "n", "1"), "0")
			in(member(w, "m0", "n", "1"), "0")
			alsoWaits(w, "w1", "1")
		}, 2, ""},
		"another workload holds some": {func(w *rcatest.World) {
			gpus(w, "n", 2)
			in(w.Wait, "0")
			in(member(w, "l0", "n", "1"), "0")
			made("Job", "other", member(w, "o", "n", "1"))
		}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.Asking(rcatest.List("nvidia.com/gpu", "1"))
			made("LeaderWorkerSet", "x", w.Wait)
			tc.fill(w)
			if got := found(waits(t, w, "LeaderWorkerSet", "x", tc.wait).Deadlock()); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// The pods of a Knative service's old revision stay until those of the new one are ready.
func TestAnOldRevisionHoldsWhatTheNewOneNeeds(t *testing.T) {
	revision := func(p *corev1.Pod, service, name string) {
		p.Labels = map[string]string{"serving.knative.dev/service": service, "serving.knative.dev/revision": name}
		made("Revision", name, p)
	}
	const holds = "likely: its rollout keeps the pods of the old revision until those of the new one are ready, and they hold what the new one waits for: 1 nvidia.com/gpu"
	for name, tc := range map[string]struct {
		gpus    int
		service string // of the one that holds
		want    string
	}{
		"the old one holds all":        {1, "s", holds},
		"another service's":            {1, "other", ""},
		"there is one, kept by nobody": {2, "s", ""},
	} {
		w := rcatest.NewWorld()
		w.Asking(rcatest.List("nvidia.com/gpu", "1"))
		gpus(w, "n", tc.gpus)
		revision(w.Wait, "s", "two")
		revision(member(w, "m", "n", "1"), tc.service, "one")
		if got := found(waits(t, w, "Revision", "two", 1).Deadlock()); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %s\nwant %s", name, got, tc.want)
		}
	}
}

// A StatefulSet replaces the pods of its old revision from the highest number down, each once the one before is ready.
func TestAStatefulSetHoldsWhatItsNewRevisionNeeds(t *testing.T) {
	const holds = "proven: its rollout keeps the pods of the old revision until those of the new one are ready, and they hold what the new one waits for: 2 nvidia.com/gpu"
	type sets = *appsv1.StatefulSet
	type pods = *corev1.Pod
	for name, tc := range map[string]struct {
		change func(set sets, old, waits pods)
		want   string
	}{
		"the old one holds all":      {func(sets, pods, pods) {}, holds},
		"of the same revision":       {func(_ sets, old, _ pods) { old.Labels[appsv1.StatefulSetRevisionLabel] = "two" }, ""},
		"the old one is the next":    {func(_ sets, old, _ pods) { old.Name = "x-2" }, ""},
		"it has no number":           {func(_ sets, old, _ pods) { old.Name = "x" }, ""},
		"there is no other revision": {func(set sets, _, _ pods) { set.Status.CurrentRevision = "two" }, ""},
		"it is deleted already":      {func(_ sets, old, _ pods) { old.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon} }, ""},
		"it replaces none":           {func(set sets, _, _ pods) { set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }, ""},
		"it may replace two at a time": {func(set sets, _, _ pods) {
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: new(intstr.FromInt32(2))}
		}, ""},
		"the one that waits is old too": {func(_ sets, _, waits pods) { waits.Labels[appsv1.StatefulSetRevisionLabel] = "zero" }, ""},
		"three of the new one":          {func(set sets, _, _ pods) { set.Spec.Replicas = new(int32(3)) }, ""},
		"another set's":                 {func(_ sets, old, _ pods) { old.OwnerReferences[0].UID = "other" }, ""},
	} {
		w := rcatest.NewWorld()
		w.Asking(rcatest.List("nvidia.com/gpu", "1"))
		gpus(w, "n", 2)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: w.Wait.Namespace, UID: "x"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2))}, Status: appsv1.StatefulSetStatus{UpdateRevision: "two"}}
		w.StatefulSets = append(w.StatefulSets, set)
		old := member(w, "x-0", "n", "2")
		w.Wait.Name = "x-1"
		for p, revision := range map[*corev1.Pod]string{w.Wait: "two", old: "one"} {
			made("StatefulSet", "x", p)
			p.OwnerReferences[0].UID, p.Labels = "x", map[string]string{appsv1.StatefulSetRevisionLabel: revision}
		}
		tc.change(set, old, w.Wait)
		if got := found(waits(t, w, "StatefulSet", "x", 1).Deadlock()); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %s\nwant %s", name, got, tc.want)
		}
	}
}

// Of more groups than a line holds the first are named, and that there are others.
func TestManyGroups(t *testing.T) {
	for n, want := range map[int]string{8: "groups a, b, c, d, e, f, g, h of it each", 9: "groups a, b, c, d, e, f, g, h and others of it each"} {
		if got := halvesSay(strings.Split("abcdefghi"[:n], ""), "nvidia.com/gpu"); !strings.HasPrefix(got, want) {
			t.Errorf("%d: %s", n, got)
		}
	}
}
