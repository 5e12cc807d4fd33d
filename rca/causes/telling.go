package causes

import (
	"slices"
	"strconv"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// telling is a cause while rules tell it of one node after the other.
type telling struct {
	diagnosis.Cause
	stated map[[2]string]bool // by reference and fact
	ofNode int                // where the evidence begins that is of the last of Nodes
	said   []saying
	of     []int          // where in said is what is said of each of Nodes; -1: nothing of its own
	at     map[string]int // where in said
}

// saying is what is said of some nodes alike.
type saying struct {
	says  string
	first string // of those nodes; empty: it is not about nodes
	nodes int
}

// tellings are those of all causes.
type tellings map[diagnosis.CauseID]*telling

// note adds a node's finding to its cause. A cause is only as certain as its
// finding on the least certain node.
func (t tellings) note(id diagnosis.CauseID, node string, f *finding) {
	cause := t[id]
	if cause == nil {
		cause = &telling{Cause: diagnosis.Cause{ID: id, Certainty: f.Certainty, Says: f.Says, Nodes: []string{}, Evidence: []diagnosis.Evidence{}}, stated: map[[2]string]bool{}, at: map[string]int{}}
		t[id] = cause
	}
	if strength(f.Certainty) > strength(cause.Certainty) {
		cause.Certainty = f.Certainty
	}
	// Nodes are told of one after the other.
	isNew := len(cause.Nodes) == 0 || cause.Nodes[len(cause.Nodes)-1] != node
	if node == "" || isNew && f.Says != "" { // what the pod's own says of every node is not said of each
		cause.say(f.Says, node)
	}
	if node != "" && isNew {
		of := -1
		if f.Says != "" {
			of = cause.at[f.Says]
		}
		cause.Nodes, cause.of = append(cause.Nodes, node), append(cause.of, of)
		cause.ofNode = len(cause.Evidence)
	}
	for _, e := range f.Evidence {
		if e.Fact != "" && !cause.states(e, node) {
			cause.Evidence = append(cause.Evidence, e)
		}
	}
}

// apart leaves with the nodes what is not said of all of a cause's.
func (t tellings) apart(nodes []diagnosis.NodeBlockers) {
	for id, k := range t {
		at := 0 // of the cause's nodes, which are in the same order
		for i := range nodes {
			if len(k.said) < 2 || at == len(k.Nodes) {
				break
			}
			n := &nodes[i]
			if n.Name != k.Nodes[at] {
				continue
			}
			if of := k.of[at]; of >= 0 {
				if n.Says == nil {
					n.Says = map[diagnosis.CauseID]string{}
				}
				n.Says[id] = k.said[of].says
			}
			at++
		}
	}
}

// say notes what is said of one more node.
func (k *telling) say(says, node string) {
	at, known := k.at[says]
	if !known {
		at = len(k.said)
		k.at[says], k.said = at, append(k.said, saying{says: says, first: node})
	}
	k.said[at].nodes++
}

// mostSaid bounds how many different things are told of the nodes of one cause.
const mostSaid = 3

// whole is what is said of all nodes, which are told apart where it is not the same.
func (k *telling) whole() string {
	if len(k.said) == 1 {
		return k.said[0].says
	}
	most := k.most()
	var parts []string
	for i, s := range most {
		if i > 0 {
			s.says = strings.TrimPrefix(s.says, shared(most[0].says))
		}
		switch {
		case s.first == "":
			parts = append(parts, s.says)
		case s.nodes == 1:
			parts = append(parts, s.says+" ("+s.first+")")
		default:
			parts = append(parts, s.says+" ("+view.CountOf(s.nodes, "node")+")")
		}
	}
	if more := len(k.said) - mostSaid; more > 0 {
		parts = append(parts, "and "+strconv.Itoa(more)+" more of the kind")
	}
	return strings.Join(parts, "; ")
}

// most are the sayings that are told: those about the most nodes.
func (k *telling) most() []saying {
	all := slices.Clone(k.said)
	slices.SortStableFunc(all, func(a, b saying) int { return b.nodes - a.nodes })
	return all[:min(len(all), mostSaid)]
}

// shared is what a sentence begins with before it comes to the point: up to its first colon.
func shared(says string) string {
	begin, _, found := strings.Cut(says, ": ")
	if !found {
		return ""
	}
	return begin + ": "
}

// states says whether the cause has that evidence already, and remembers it. What is read
// from a node is evidence about that node alone, so only the node's own is searched.
func (k *telling) states(e diagnosis.Evidence, node string) bool {
	if kind, name, _ := strings.Cut(e.Ref, "/"); node != "" && name == node && (kind == "Node" || kind == "NodeGeometry") {
		return slices.ContainsFunc(k.Evidence[k.ofNode:], e.Same)
	}
	known := len(k.stated)
	k.stated[[2]string{e.Ref, e.Fact}] = true
	return len(k.stated) == known
}

func strength(c diagnosis.Certainty) int {
	return slices.Index([]diagnosis.Certainty{diagnosis.Proven, diagnosis.Likely, diagnosis.Possible}, c)
}
