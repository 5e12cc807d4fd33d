package causes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/rca/diagnosis"
)

// What is said of nodes is told once where it is the same of all; else what most have first,
// with how many they are, three things at most, and how they all begin not again.
func TestWhatIsSaidOfNodes(t *testing.T) {
	for want, told := range map[string]string{ // node and what is said of it, with = between
		"held":                                                "n1=held, n2=held",
		"held (2 nodes); cordoned (n3)":                       "n1=held, n2=held, n3=cordoned",
		"held (2 nodes); cordoned (n1)":                       "n1=cordoned, n2=held, n3=held",
		"a: x (2 nodes); y (n1)":                              "n1=a: y, n2=a: x, n3=a: x",
		"a: x (n1); b: y (n2)":                                "n1=a: x, n2=b: y",
		"of none; held (n1)":                                  "=of none, n1=held",
		"a (n1); b (n2); c (n3)":                              "n1=a, n2=b, n3=c",
		"a (n1); b (n2); c (n3); and 1 more of the kind":      "n1=a, n2=b, n3=c, n4=d",
		"e (2 nodes); a (n1); b (n2); and 2 more of the kind": "n1=a, n2=b, n3=c, n4=d, n5=e, n6=e",
		"first": "n1=first, n1=second", // of a node what was said first
		"p; q":  "=p, =q",
	} {
		all := tellings{}
		for one := range strings.SplitSeq(told, ", ") {
			node, says, _ := strings.Cut(one, "=")
			all.note(diagnosis.GPUsInUse, node, &finding{Certainty: diagnosis.Proven, Says: says})
		}
		if got := all[diagnosis.GPUsInUse].whole(); got != want {
			t.Errorf("%s: %q, want %q", told, got, want)
		}
	}
}

// A cause is as certain as it is of the node that is least sure.
func TestTheLeastCertainNodeCounts(t *testing.T) {
	for _, c := range []struct {
		of   []diagnosis.Certainty
		want diagnosis.Certainty
	}{
		{[]diagnosis.Certainty{diagnosis.Proven, diagnosis.Proven}, diagnosis.Proven},
		{[]diagnosis.Certainty{diagnosis.Proven, diagnosis.Possible, diagnosis.Likely}, diagnosis.Possible},
		{[]diagnosis.Certainty{diagnosis.Likely, diagnosis.Proven}, diagnosis.Likely},
	} {
		all := tellings{}
		for i, certainty := range c.of {
			all.note(diagnosis.GPUsInUse, string(rune('a'+i)), &finding{Certainty: certainty, Says: "held"})
		}
		if k := all[diagnosis.GPUsInUse]; k.Certainty != c.want || len(k.Nodes) != len(c.of) {
			t.Errorf("%v: %s of %v", c.of, k.Certainty, k.Nodes)
		}
	}
}

// What a cause does not say of all of its nodes stays with each of them; what it says of all does not.
func TestWhatIsSaidOfOneNodeStaysWithIt(t *testing.T) {
	all := tellings{}
	nodes := []diagnosis.NodeBlockers{}
	for _, one := range []struct {
		node, says string
		cause      diagnosis.CauseID
	}{{"n1", "taint a", diagnosis.UntoleratedTaint}, {"n2", "", diagnosis.UntoleratedTaint}, {"n3", "held", diagnosis.GPUsInUse}, {"n4", "held", diagnosis.GPUsInUse}, {"n5", "taint b", diagnosis.UntoleratedTaint}} {
		all.note(one.cause, one.node, &finding{Certainty: diagnosis.Proven, Says: one.says})
		nodes = append(nodes, diagnosis.NodeBlockers{Name: one.node})
	}
	all.apart(nodes)
	of := func(says string) map[diagnosis.CauseID]string {
		return map[diagnosis.CauseID]string{diagnosis.UntoleratedTaint: says}
	}
	want := []diagnosis.NodeBlockers{{Name: "n1", Says: of("taint a")}, {Name: "n2"}, {Name: "n3"}, {Name: "n4"}, {Name: "n5", Says: of("taint b")}}
	if diff := cmp.Diff(want, nodes); diff != "" {
		t.Error(diff)
	}
}
