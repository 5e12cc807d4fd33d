package causes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// telling is a cause while rules tell it of one node after the other.
type telling struct {
	diagnosis.Cause
	stated map[diagnosis.Evidence]bool
	ofNode int // where the evidence begins that is of the last of Nodes
	said   []saying
}

// saying is a sentence about a cause, and the nodes that it is true of.
type saying struct {
	says  string
	nodes []string
}

// maxSayings is how many sentences a cause has at most, where nodes differ in it.
const maxSayings = 3

// say remembers what is said of a node.
func (k *telling) say(says, node string) {
	if i := slices.IndexFunc(k.said, func(s saying) bool { return s.says == says }); i >= 0 {
		k.said[i].nodes = append(k.said[i].nodes, node)
		return
	}
	k.said = append(k.said, saying{says, []string{node}})
}

// text is what is true of every node of the cause, or what is true of which.
func (k *telling) text() string {
	if len(k.said) < 2 {
		return k.Says
	}
	parts := make([]string, 0, maxSayings+1)
	rest := 0
	for i, s := range k.said {
		if i >= maxSayings {
			rest += len(s.nodes)
			continue
		}
		of := s.nodes[0]
		if more := len(s.nodes) - 1; more > 0 {
			of += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, of+": "+s.says)
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%s otherwise", view.CountOf(rest, "node")))
	}
	return strings.Join(parts, "; ")
}

// tellings are those of all causes.
type tellings map[diagnosis.CauseID]*telling

// note adds a node's finding to its cause. A cause is only as certain as its
// finding on the least certain node.
func (t tellings) note(id diagnosis.CauseID, node string, f *finding) {
	cause := t[id]
	if cause == nil {
		cause = &telling{Cause: diagnosis.Cause{ID: id, Certainty: f.certainty, Says: f.says, Nodes: []string{}, Evidence: []diagnosis.Evidence{}}, stated: map[diagnosis.Evidence]bool{}}
		t[id] = cause
	}
	if strength(f.certainty) > strength(cause.Certainty) {
		cause.Certainty = f.certainty
	}
	// Nodes are told of one after the other.
	if node != "" && (len(cause.Nodes) == 0 || cause.Nodes[len(cause.Nodes)-1] != node) {
		cause.Nodes = append(cause.Nodes, node)
		cause.say(f.says, node)
		cause.ofNode = len(cause.Evidence)
	}
	for _, e := range f.evidence {
		if e.Fact != "" && !cause.states(e, node) {
			cause.Evidence = append(cause.Evidence, e)
		}
	}
}

// states says whether the cause has that evidence already, and remembers it. What is read
// from a node is evidence about that node alone, so only the node's own is searched.
func (k *telling) states(e diagnosis.Evidence, node string) bool {
	if kind, name, _ := strings.Cut(e.Ref, "/"); node != "" && name == node && (kind == "Node" || kind == "NodeGeometry") {
		return slices.Contains(k.Evidence[k.ofNode:], e)
	}
	known := len(k.stated)
	k.stated[e] = true
	return len(k.stated) == known
}

func strength(c diagnosis.Certainty) int {
	return slices.Index([]diagnosis.Certainty{diagnosis.Proven, diagnosis.Likely, diagnosis.Possible}, c)
}
