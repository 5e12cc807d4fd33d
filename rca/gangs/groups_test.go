package gangs

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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

// Of more groups than a line holds the first are named, and that there are others.
func TestManyGroups(t *testing.T) {
	for n, want := range map[int]string{8: "groups a, b, c, d, e, f, g, h of it each", 9: "groups a, b, c, d, e, f, g, h and others of it each"} {
		if got := halvesSay(strings.Split("abcdefghi"[:n], ""), "nvidia.com/gpu"); !strings.HasPrefix(got, want) {
			t.Errorf("%d: %s", n, got)
		}
	}
}
