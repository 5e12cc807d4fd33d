package gangs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/whatif"

	corev1 "k8s.io/api/core/v1"
)

// What stops a member is the reason that most nodes give, and of equals the first by its words.
func TestWhatStopsAMember(t *testing.T) {
	for want, reasons := range map[string][]string{ // of each node, with commas
		" 0":     {"", ""},
		"full 1": {"full"},
		"full 2": {"taint", "full", "full,cpu"},
		"a 1":    {"b", "a"},
		"a 2":    {"b,a", "a,b"},
	} {
		var v whatif.Verdict
		for i, all := range reasons {
			n := whatif.NodeVerdict{Node: fmt.Sprint(i)}
			for reason := range strings.SplitSeq(all, ",") {
				if reason != "" {
					n.Blockers = append(n.Blockers, whatif.Blocker{Reason: reason})
				}
			}
			v.Nodes = append(v.Nodes, n)
		}
		if reason, nodes := stopper(v); fmt.Sprint(reason, " ", nodes) != want {
			t.Errorf("%q: %q on %d, want %q", reasons, reason, nodes, want)
		}
	}
}

// A gang is shown by how many there are of it, how many of those have a node, and how many run.
func TestAGangIsShownByItsMembers(t *testing.T) {
	w := rcatest.NewWorld()
	w.AddNode(sim.Node{Name: "n1", GPUs: 1, MIGOff: []int{0}})
	group(w, 5, "u", "v", "x")
	for i, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodPending} {
		w.Pods[i+1].Spec.NodeName, w.Pods[i+1].Status.Phase = "n1", phase
	}
	of, by := opened(t, w)
	g, err := Read(t.Context(), of, by)
	if err != nil {
		t.Fatal(err)
	}
	e := g.evidence()
	if len(e) != 1 || e[0].Ref != "PodGroup/a/train" || e[0].Fact != "at least 5 together (scheduling.x-k8s.io): 4 exist, 2 have a node, 1 run" {
		t.Fatalf("%+v", e)
	}
	var got []string
	for _, k := range e[0].Claims {
		got = append(got, k.Path+" "+k.Value)
	}
	if text := strings.Join(got, "; "); text != "spec.minMember 5; count(members) 4; count(members.spec.nodeName) 2; count(members[phase=Running]) 1" {
		t.Error(text)
	}
}

// How many members have room is claimed: of members alike by counts, with on how many nodes there is too little for the
// next; of members that differ of each that found a place. A number of nodes that nothing shows is not told.
func TestRoomIsClaimed(t *testing.T) {
	port := func(w *rcatest.World) {
		for _, p := range w.Pods {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		}
	}
	for name, tc := range map[string]struct {
		edit               func(*rcatest.World)
		says, fact, claims string
	}{
		"alike": {nil, "2 of 4 members of its gang fit together", "2 have room; the next is stopped by: Insufficient nvidia.com/gpu on 3 nodes", "Pod/a/w room = 2; Pod/a/w short[nvidia.com/gpu] = 3"},
		"one runs": {func(w *rcatest.World) { w.Pods[1].Spec.NodeName, w.Pods[1].Status.Phase = "n1", corev1.PodRunning },
			"1 of 4 members of its gang has a node, and 1 more fits", "1 more has room; the next is stopped by: Insufficient nvidia.com/gpu on 3 nodes", "Pod/a/w room = 1; Pod/a/w short[nvidia.com/gpu] = 3"},
		"two run": {func(w *rcatest.World) {
			for _, p := range w.Pods[1:3] {
				p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
			}
			w.AddNode(sim.Node{Name: "n4", GPUs: 2, MIGOff: []int{0, 1}})
		}, "2 of 4 members of its gang have a node, and 1 more fits", "1 more has room; the next is stopped by: Insufficient nvidia.com/gpu on 4 nodes", "Pod/a/w room = 1; Pod/a/w short[nvidia.com/gpu] = 4"},
		"by what is no count": {port, "1 of 4 members of its gang fit together", "1 has room; the next is stopped by: Insufficient nvidia.com/gpu", "Pod/a/w room at least 1"},
		"one is larger": {func(w *rcatest.World) {
			w.Pods[1].Spec.Containers[0].Resources.Requests = rcatest.List("nvidia.com/gpu", "3")
			w.Pods[1].Spec.Containers[0].Resources.Limits = rcatest.List("nvidia.com/gpu", "3")
		}, "2 of 4 members of its gang fit together", "2 have room; the next is stopped by: Insufficient nvidia.com/gpu", "Pod/a/w room at least 1; Pod/a/v room at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n1", GPUs: 4, MIGOff: []int{0, 1, 2, 3}})
			for _, name := range []string{"n2", "n3"} {
				w.AddNode(sim.Node{Name: name, GPUs: 1, MIGOff: []int{0}})
			}
			group(w, 4, "u", "v", "x")
			if tc.edit != nil {
				tc.edit(w)
			}
			of, by := opened(t, w)
			g, err := Read(t.Context(), of, by)
			if err != nil {
				t.Fatal(err)
			}
			f := g.Tell(true)
			e := f.Evidence[len(f.Evidence)-1]
			var claims []string
			for _, k := range e.Claims {
				claims = append(claims, fmt.Sprint(k.Ref, " ", k.Path, " ", k.Op, " ", k.Value))
			}
			if fact := strings.TrimPrefix(e.Fact, "placed one after another on a copy, "); f.Says != tc.says || fact != tc.fact || strings.Join(claims, "; ") != tc.claims {
				t.Errorf("%s: %s, claims %q", f.Says, fact, claims)
			}
		})
	}
}

// What members wait for is claimed as counts: what the nodes that they may use have, where nothing
// else keeps them away, and who of their maker there are, where it makes no others.
func TestWhatIsWaitedForIsCounted(t *testing.T) {
	const asks, has = "Pod/a/w requests[nvidia.com/gpu] = 2", "\nPod/a/w sum(nodes.status.allocatable[nvidia.com/gpu]) = 2"
	const all = "\nPyTorchJob/a/train count(pods) = 2\nPyTorchJob/a/train sum(pods.requests[nvidia.com/gpu]) = 4"
	for name, tc := range map[string]struct {
		edit func(*rcatest.World)
		want string
	}{
		"all of it": {func(*rcatest.World) {}, asks + has + all},
		"a port is taken": {func(w *rcatest.World) {
			gpus(w, "o", 2)
			w.Wait.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
			w.AddHolder("x", "o", "cpu", 0).Spec.Containers[0].Ports = w.Wait.Spec.Containers[0].Ports
		}, asks + all},
		"its maker makes others": {func(w *rcatest.World) { member(w, "done", "n", "2").Status.Phase = corev1.PodSucceeded }, asks + has},
		"others of another maker": {func(w *rcatest.World) {
			p := member(w, "done", "n", "2")
			made("PyTorchJob", "other", p)
			p.Status.Phase = corev1.PodSucceeded
		}, asks + has + all},
	} {
		w := rcatest.NewWorld()
		made("PyTorchJob", "train", w.Wait)
		w.Asking(rcatest.List("nvidia.com/gpu", "2"))
		gpus(w, "n", 2)
		member(w, "m", "n", "2")
		tc.edit(w)
		f := waits(t, w, "PyTorchJob", "train", 1).Deadlock()
		var got []string
		for _, k := range f.Evidence[len(f.Evidence)-1].Claims {
			got = append(got, fmt.Sprintf("%s %s %s %s", k.Ref, k.Path, k.Op, k.Value))
		}
		if text := strings.Join(got, "\n"); text != tc.want {
			t.Errorf("%s: %s\nwant\n%s", name, text, tc.want)
		}
	}
}
