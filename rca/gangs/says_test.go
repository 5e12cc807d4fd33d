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
		"":                {"", ""},
		"full on 1 node":  {"full"},
		"full on 2 nodes": {"taint", "full", "full,cpu"},
		"a on 1 node":     {"b", "a"},
		"a on 2 nodes":    {"b,a", "a,b"},
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
		if got := stopper(v); got != want {
			t.Errorf("%q: %q, want %q", reasons, got, want)
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
