package wording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Reason is nodes that the same causes keep the pod from, or a cause of no node: of the pod,
// or of the cluster.
type Reason struct {
	Nodes string // "6 nodes"; empty where it is of none
	Says  string // what is not proven is marked
	Node  string // its name, where it is one
}

// mostReasons are told one by one; the others are counted.
const mostReasons = 4

// Why are the reasons for which it waits, the root cause's first; their counts add up to the
// number of nodes.
func Why(d diagnosis.Summary) (out []Reason) {
	all, others := reasons(d)
	shown := all
	if len(all) > mostReasons {
		shown = all[:mostReasons-1]
	}
	for _, r := range shown {
		line := Reason{Says: says(d, r)}
		if r.count > 0 {
			line.Nodes = nodes(r.count)
		}
		if len(r.names) == 1 && r.count == 1 {
			line.Node = r.names[0]
		}
		out = append(out, line)
	}
	for _, r := range all[len(shown):] {
		others += r.count
	}
	if others > 0 {
		out = append(out, Reason{Nodes: nodes(others), Says: "for other reasons"})
	}
	return out
}

// reason is nodes that the same causes keep the pod from.
type reason struct {
	causes []diagnosis.CauseID
	count  int
	names  []string
}

// reasons parts all nodes by their causes, the root cause's first; the counts add up to the
// number of nodes. A cause of 0 nodes is of the pod, or of the cluster.
func reasons(d diagnosis.Summary) (out []reason, rest int) {
	rank := func(id diagnosis.CauseID) int {
		if i := slices.IndexFunc(d.Causes, func(c diagnosis.CauseSummary) bool { return c.ID == id }); i >= 0 {
			return i
		}
		return len(d.Causes)
	}
	for _, c := range d.Causes {
		if c.NodeCount == 0 {
			out = append(out, reason{causes: []diagnosis.CauseID{c.ID}})
		}
	}
	by, rest := map[string]int{}, d.NodeCount
	for _, g := range d.Nodes {
		rest -= g.Count
		var causes []diagnosis.CauseID
		for _, b := range g.Blockers {
			causes = append(causes, b.Cause)
		}
		slices.SortFunc(causes, func(a, b diagnosis.CauseID) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
		causes = slices.Compact(causes)
		i, known := by[fmt.Sprint(causes)]
		if !known {
			i = len(out)
			by[fmt.Sprint(causes)] = i
			out = append(out, reason{causes: causes})
		}
		out[i].count += g.Count
		out[i].names = append(out[i].names, g.Names...)
	}
	first := func(r reason) int {
		if len(r.causes) == 0 {
			return len(d.Causes) + 1
		}
		return rank(r.causes[0])
	}
	slices.SortStableFunc(out, func(a, b reason) int {
		return cmp.Or(min(1, a.count)-min(1, b.count), first(a)-first(b), b.count-a.count)
	})
	return out, rest
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// says is what keeps the pod away; what is not proven is marked.
func says(d diagnosis.Summary, r reason) string {
	if len(r.causes) == 0 {
		return "no blocker there"
	}
	var out []string
	for _, id := range r.causes {
		text := string(id)
		if i := slices.IndexFunc(d.Causes, func(c diagnosis.CauseSummary) bool { return c.ID == id }); i >= 0 {
			c := d.Causes[i]
			mark := ""
			if c.Certainty != diagnosis.Proven {
				mark = ", " + string(c.Certainty)
			}
			text = fmt.Sprintf("%s (%s%s)", c.Says, id, mark)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; also ")
}
