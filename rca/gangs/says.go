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
	says := fmt.Sprintf("%d of %d members of its gang fit together", g.Fit, g.Min)
	if g.bound > 0 {
		says = fmt.Sprintf("%d of %d members of its gang %s a node, and %s", g.bound, g.Min, have(g.bound), moreFit(len(g.placed)))
	}
	return view.Found(g.certainty(g.exact), says, g.evidence()...)
}

func (g *Gang) certainty(sure bool) diagnosis.Certainty {
	if !sure || g.of.Cluster.State.Unread["Pod"] != "" {
		return diagnosis.Likely
	}
	return diagnosis.Proven
}

// Unread says why the objects of the pod's group were not read.
func (g *Gang) Unread() string { return g.of.Cluster.State.Unread["PodGroup."+g.Kind.API] }

func moreFit(n int) string {
	switch n {
	case 0:
		return "no more fit"
	case 1:
		return "1 more fits"
	}
	return fmt.Sprintf("%d more fit", n)
}

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// roomSays is how many members have room, and what stops the next: on how many nodes where that
// follows from counts alone.
func (g *Gang) roomSays() string {
	more := ""
	if g.bound > 0 {
		more = " more"
	}
	says := fmt.Sprintf("placed one after another on a copy, %d%s %s room; the next is stopped by: %s", len(g.placed), more, have(len(g.placed)), g.stops)
	if _, short := g.short(); short {
		says += " on " + view.CountOf(g.stopped, "node")
	}
	return says
}

// short is what nodes have too little of for one more; false where members differ, or something else
// than counts keeps them from nodes.
func (g *Gang) short() (resource string, is bool) {
	resource, is = strings.CutPrefix(g.stops, "Insufficient ")
	return resource, is && g.exact && g.counted
}

// mostPlaced is how many members that differ are claimed to have room, one by one.
const mostPlaced = 16

// roomClaims are how many members like this one have room by counts, and on how many nodes there is
// too little for another: as many as were placed, where all ask the same and nothing else keeps them
// from nodes, else at least so many. Of members that differ each has room.
func (g *Gang) roomClaims() []diagnosis.Claim {
	if !g.exact {
		var out []diagnosis.Claim
		for _, m := range g.placed[:min(len(g.placed), mostPlaced)] {
			out = append(out, g.of.Cluster.OfPod(m, diagnosis.That("room", "", diagnosis.AtLeast, "1"))...)
		}
		return out
	}
	room := strconv.Itoa(len(g.placed))
	if resource, is := g.short(); is {
		return g.of.Claims(diagnosis.That("room", "", diagnosis.Is, room), diagnosis.That("short", resource, diagnosis.Is, strconv.Itoa(g.stopped)))
	}
	op := diagnosis.AtLeast
	if g.counted {
		op = diagnosis.Is
	}
	return g.of.Claims(diagnosis.That("room", "", op, room))
}

func (g *Gang) evidence() []diagnosis.Evidence {
	ref := "PodGroup/" + g.of.Pod.Namespace + "/" + g.Name
	is := func(path string, n int) diagnosis.Claim {
		return diagnosis.That(path, "", diagnosis.Is, strconv.Itoa(n))
	}
	out := []diagnosis.Evidence{diagnosis.Fact(ref, fmt.Sprintf("at least %d together (%s): %d exist, %d have a node, %d run", g.Min, g.Kind.API, len(g.members), g.bound, g.running),
		is(strings.Join(g.Kind.Min, "."), g.Min), is("count(members)", len(g.members)), is("count(members.spec.nodeName)", g.bound), is("count(members[phase=Running])", g.running))}
	if g.Missing() == 0 && g.stops != "" {
		out = append(out, diagnosis.Fact(ref, g.roomSays(), g.roomClaims()...))
	}
	return out
}
