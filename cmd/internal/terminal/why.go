package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/unpend/unpend/rca/diagnosis"
)

// group is the nodes that the same causes keep the pod from.
type group struct {
	causes []diagnosis.CauseID // most important first; empty: nothing keeps it
	nodes  []string
}

// groups parts all nodes by their set of causes, so that the counts add up to
// the number of nodes. The root cause's groups come first, free nodes last.
func groups(d diagnosis.Diagnosis) []group {
	rank := func(id diagnosis.CauseID) int {
		i := slices.IndexFunc(d.Causes, func(c diagnosis.Cause) bool { return c.ID == id })
		if i < 0 {
			return len(d.Causes)
		}
		return i
	}
	byKey := map[string]*group{}
	var out []*group
	for _, n := range d.Nodes {
		var causes []diagnosis.CauseID
		for _, b := range n.Blockers {
			causes = append(causes, b.Cause)
		}
		slices.SortFunc(causes, func(a, b diagnosis.CauseID) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
		causes = slices.Compact(causes)
		key := fmt.Sprint(causes)
		if byKey[key] == nil {
			byKey[key] = &group{causes: causes}
			out = append(out, byKey[key])
		}
		byKey[key].nodes = append(byKey[key].nodes, n.Name)
	}
	first := func(g *group) int {
		if len(g.causes) == 0 {
			return len(d.Causes) + 1
		}
		return rank(g.causes[0])
	}
	slices.SortFunc(out, func(a, b *group) int {
		return cmp.Or(first(a)-first(b), len(b.nodes)-len(a.nodes), slices.Compare(a.causes, b.causes))
	})
	flat := make([]group, len(out))
	for i, g := range out {
		flat[i] = *g
	}
	return flat
}

// row is one branch of the tree of reasons.
type row struct {
	count, says, ids string
	fact             string // the evidence that decides it
	free             bool   // the pod fits there
}

// reasons draws why a pod waits, as a tree.
type reasons struct {
	style
	less int // lines fewer than it may have
}

// why is the tree of reasons, within its lines. When there are more groups than
// lines the last branch names the remaining ones with their counts.
func (o reasons) why(d diagnosis.Diagnosis) []string {
	var rows []row
	for _, c := range d.Causes {
		// A cause of no node is told of the pod or of the cluster.
		if says := ofNoNode(d, c); says != "" && len(rows) < o.whyLines()-1 {
			rows = append(rows, row{says: o.clean(says), ids: o.label(c), fact: o.decisive(c, nil)})
		}
	}
	shown := groups(d)
	var rest []group
	if room := o.whyLines() - len(rows); len(shown) > room {
		shown, rest = shown[:room-1], shown[room-1:]
	}
	told, own := map[diagnosis.CauseID]bool{}, len(rows)
	for _, g := range shown {
		rows = append(rows, o.groupRow(d, g, told))
	}
	if at := ofRoot(d, shown); own > 0 && at >= 0 { // the root stands first
		root := rows[own+at]
		rows = slices.Insert(slices.Delete(rows, own+at, own+at+1), 0, root)
	}
	if len(rest) > 0 {
		rows = append(rows, o.restRow(d, rest))
	}
	if len(d.Nodes) == 0 && len(rows) == 0 {
		rows = append(rows, row{says: "no node could be judged"})
	}
	return o.tree(rows)
}

// ofRoot is the first group of nodes that the root cause keeps the pod from, where it is one of nodes; -1 for none.
func ofRoot(d diagnosis.Diagnosis, shown []group) int {
	if len(d.Causes) == 0 || ofNoNode(d, d.Causes[0]) != "" {
		return -1
	}
	return slices.IndexFunc(shown, func(g group) bool { return slices.Contains(g.causes, d.Causes[0].ID) })
}

// ofNoNode is what a cause says of the pod or of the cluster: all of it where it names no node, else what stands before the words
// that are about nodes.
func ofNoNode(d diagnosis.Diagnosis, c diagnosis.Cause) string {
	if len(c.Nodes) == 0 {
		return c.Says
	}
	own := ""
	for _, n := range d.Nodes {
		says := n.Says[c.ID]
		if says == "" {
			continue
		}
		before, _, about := strings.Cut(c.Says, "; "+says)
		if !about || own != "" && len(before) >= len(own) {
			if strings.HasPrefix(c.Says, says) {
				return ""
			}
			continue
		}
		own = before
	}
	return own
}

func (o reasons) whyLines() int {
	if o.columns() < besideCosts {
		return narrowWhyLines - o.less
	}
	return maxWhyLines - o.less
}

// decisive is the evidence that decides a cause, on one of these nodes where they are given;
// empty where the cause says no less.
func (o reasons) decisive(c diagnosis.Cause, nodes []string) string {
	for _, e := range c.Evidence {
		kind, name, _ := strings.Cut(e.Ref, "/")
		elsewhere := (kind == "Node" || kind == "NodeGeometry") && nodes != nil && !slices.Contains(nodes, name)
		if !elsewhere && !strings.Contains(c.Says, e.Fact) {
			return o.clean(e.Ref + ": " + e.Fact)
		}
	}
	return ""
}

// groupRow tells of a cause that was told before without its evidence.
func (o reasons) groupRow(d diagnosis.Diagnosis, g group, told map[diagnosis.CauseID]bool) row {
	r := row{count: nodes(len(g.nodes))}
	if len(g.causes) == 0 {
		if r.says, r.free = d.Unkept(len(g.nodes)); r.free {
			r.ids = "fits"
		}
	}
	var says, ids []string
	for _, id := range g.causes {
		i := slices.IndexFunc(d.Causes, func(c diagnosis.Cause) bool { return c.ID == id })
		if i < 0 {
			ids = append(ids, o.clean(string(id)))
			continue
		}
		says, ids = append(says, o.clean(ofNodes(d, g, d.Causes[i]))), append(ids, o.label(d.Causes[i]))
		if r.fact == "" && !told[id] {
			told[id], r.fact = true, o.decisive(d.Causes[i], g.nodes)
		}
	}
	if len(ids) > 0 {
		r.says, r.ids = strings.Join(says, "; also "), strings.Join(ids, "+")
	}
	if len(g.nodes) == 1 {
		r.ids += " " + o.clean(g.nodes[0])
	}
	return r
}

// ofNodes is what a cause says of a group's nodes: what it says of all, where it tells these apart.
func ofNodes(d diagnosis.Diagnosis, g group, c diagnosis.Cause) string {
	says := ""
	for _, n := range d.Nodes {
		if !slices.Contains(g.nodes, n.Name) {
			continue
		}
		if of := n.Says[c.ID]; of == "" || says != "" && says != of {
			return c.Says
		}
		says = n.Says[c.ID]
	}
	return cmp.Or(says, c.Says)
}

// label is a cause's id, marked when it is not proven.
func (o reasons) label(c diagnosis.Cause) string {
	if c.Certainty == diagnosis.Proven {
		return o.clean(string(c.ID))
	}
	return fmt.Sprintf("%s(%s)", o.clean(string(c.ID)), o.clean(string(c.Certainty)))
}

func (o reasons) restRow(d diagnosis.Diagnosis, rest []group) row {
	n := 0
	var parts []string
	for _, g := range rest {
		n += len(g.nodes)
		ids := []string{"fits"}
		if _, fits := d.Unkept(1); !fits {
			ids[0] = "without a blocker"
		}
		if len(g.causes) > 0 {
			ids = nil
			for _, id := range g.causes {
				ids = append(ids, o.clean(string(id)))
			}
		}
		parts = append(parts, fmt.Sprintf("%d %s", len(g.nodes), strings.Join(ids, "+")))
	}
	return row{count: nodes(n), says: strings.Join(parts, ", ")}
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// tree draws the rows. Those that do not fit into one line get more, and the evidence
// that decides them another, from the top, while there is room.
func (o reasons) tree(rows []row) []string {
	counts := 0
	for _, r := range rows {
		counts = max(counts, width(r.count))
	}
	spare := o.whyLines() - len(rows)
	var out []string
	for i, r := range rows {
		branch, stem := o.glyph("├─ ", "|- "), o.glyph("│  ", "|  ")
		if i == len(rows)-1 {
			branch, stem = o.glyph("└─ ", "`- "), "   "
		}
		lead := pad(r.count, counts) + "  "
		if counts == 0 {
			lead = ""
		}
		room := o.columns() - 2 - 3 - width(lead)
		for k, line := range o.rowLines(r, room, min(1+max(spare, 0), maxRowLines)) {
			if k == 0 {
				out = append(out, "  "+branch+lead+line)
			} else {
				out = append(out, "  "+stem+strings.Repeat(" ", width(lead))+line)
				spare--
			}
		}
		if r.fact != "" && spare > 0 {
			out = append(out, o.faint("  "+stem+strings.Repeat(" ", width(lead))+o.cut(r.fact, room)))
			spare--
		}
	}
	return out
}

// maxRowLines is how many lines a cause's text gets, while there is room: what decides often
// stands at its end.
const maxRowLines = 3

// rowLines sets the text at the left and the ids at the right of one line, or, when that
// does not fit and more lines may be taken, at the end of the last.
func (o reasons) rowLines(r row, room, lines int) []string {
	if r.ids == "" {
		return o.wrap(o.ofBothEnds(r.says, 0, room, lines), room, lines)
	}
	ids := o.cut(r.ids, room)
	left := room - width(ids) - 2
	shown := lipgloss.Yellow
	if r.free {
		shown = lipgloss.Green
	}
	parts := []string{r.says}
	if width(r.says) > left && lines > 1 {
		parts = o.wrap(o.ofBothEnds(r.says, width(ids)+2, room, lines), room, lines)
		if width(parts[len(parts)-1]) > left && len(parts) < lines {
			parts = append(parts, "")
		}
	}
	last := len(parts) - 1
	parts[last] = o.ends(o.cut(parts[last], left), o.tint(shown, ids), room)
	return parts
}
