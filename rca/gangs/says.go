package gangs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Tell says what the gang lacks: either not all of the group exist, or they do not fit together
// though this one would alone (fits). Where not even this one fits, what keeps it from the nodes
// is told. A group without its object is told of where that is the API server's own, which is
// waited for (gangscheduling.go, PreEnqueue); others are their schedulers' affair, of which
// only their words are known.
func (g *Gang) Tell(fits bool) *view.Finding {
	switch {
	case !g.Known && g.Unread() == "" && g.Kind.API == "scheduling.k8s.io":
		return view.Found(diagnosis.Likely, fmt.Sprintf("its PodGroup %s does not exist", g.Name), diagnosis.Fact(g.of.Ref(), "spec.schedulingGroup names PodGroup "+g.Name, g.of.Claims(diagnosis.That("spec.schedulingGroup", "", diagnosis.Contains, g.Name))...))
	case !g.Known:
		return nil
	case g.Missing() > 0:
		return view.Found(g.certainty(true), fmt.Sprintf("%d of %d members of its gang exist", len(g.members), g.Min), g.evidence()...)
	case !g.Incomplete() || !fits:
		return nil
	}
	return view.Found(g.certainty(g.exact), fmt.Sprintf("%d of %d members of its gang fit together", g.Fit, g.Min), g.evidence()...)
}

func (g *Gang) certainty(sure bool) diagnosis.Certainty {
	if !sure || g.of.Cluster.State.Unread["Pod"] != "" {
		return diagnosis.Likely
	}
	return diagnosis.Proven
}

// Unread says why the objects of the pod's group were not read.
func (g *Gang) Unread() string { return g.of.Cluster.State.Unread["PodGroup."+g.Kind.API] }

// roomClaims are how many members like this one have room by counts: as many as were placed, where
// all ask the same and nothing else keeps them from nodes, else at least so many.
func (g *Gang) roomClaims() []diagnosis.Claim {
	op := diagnosis.AtLeast
	if g.exact && g.counted {
		op = diagnosis.Is
	}
	if !g.exact || len(view.AsksOf(g.of.Pod)) == 0 {
		return nil
	}
	return g.of.Claims(diagnosis.That("room", "", op, strconv.Itoa(g.Fit-g.bound)))
}

func (g *Gang) evidence() []diagnosis.Evidence {
	ref := "PodGroup/" + g.of.Pod.Namespace + "/" + g.Name
	is := func(path string, n int) diagnosis.Claim {
		return diagnosis.That(path, "", diagnosis.Is, strconv.Itoa(n))
	}
	out := []diagnosis.Evidence{diagnosis.Fact(ref, fmt.Sprintf("at least %d together (%s): %d exist, %d have a node, %d run", g.Min, g.Kind.API, len(g.members), g.bound, g.running),
		is(strings.Join(g.Kind.Min, "."), g.Min), is("count(members)", len(g.members)), is("count(members.spec.nodeName)", g.bound), is("count(members[phase=Running])", g.running))}
	if g.Missing() == 0 && g.stops != "" {
		out = append(out, diagnosis.Fact(ref, fmt.Sprintf("placed one after another on a copy, %d have room; the next is stopped by: %s", g.Fit, g.stops), g.roomClaims()...))
	}
	return out
}
