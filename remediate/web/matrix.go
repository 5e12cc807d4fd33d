package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/unpend/unpend/rca/diagnosis"
)

// matrix is what keeps the pod from which nodes: nodes with the same blockers are a row.
type matrix struct {
	Columns []column
	Rows    []matrixRow
	Rest    string // nodes that are not shown
	Total   string
}

type column struct{ Cause, Words string }

type matrixRow struct {
	Nodes   string
	Names   string
	Cells   []string // what the scheduler said, by column; empty: that does not keep it away
	Reasons []diagnosis.Blocker
	Unkept  string // what is said where there are none
}

// matrixOf is nil where no node was looked at. The root cause's column is the first.
func matrixOf(d diagnosis.Summary) *matrix {
	if len(d.Nodes) == 0 {
		return nil
	}
	m, rest := &matrix{Total: count(d.NodeCount, "node", "nodes")}, d.NodeCount
	var ids []diagnosis.CauseID
	for _, g := range d.Nodes {
		for _, b := range g.Blockers {
			ids = append(ids, b.Cause)
		}
	}
	rank := func(id diagnosis.CauseID) int {
		if n := slices.IndexFunc(d.Causes, func(c diagnosis.CauseSummary) bool { return c.ID == id }); n >= 0 {
			return n
		}
		return len(d.Causes)
	}
	slices.SortFunc(ids, func(a, b diagnosis.CauseID) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
	ids = slices.Compact(ids)
	for _, id := range ids {
		m.Columns = append(m.Columns, column{string(id), cmp.Or(id.Words(), string(id))})
	}
	for _, g := range d.Nodes {
		rest -= g.Count
		unkept, _ := d.Unkept(g.Count)
		r := matrixRow{Unkept: unkept, Nodes: count(g.Count, "node", "nodes"), Names: someNames(g.Names, g.Count), Cells: make([]string, len(ids)), Reasons: g.Blockers}
		for _, b := range g.Blockers {
			at := slices.Index(ids, b.Cause)
			r.Cells[at] = strings.TrimPrefix(r.Cells[at]+"; "+clean(b.Plugin+": "+b.Reason), "; ")
		}
		m.Rows = append(m.Rows, r)
	}
	if rest > 0 {
		m.Rest = count(rest, "more node", "more nodes")
	}
	return m
}

// mostNames of nodes are listed in one row.
const mostNames = 6

func someNames(names []string, all int) string {
	shown := names[:min(len(names), mostNames)]
	text := clean(strings.Join(shown, ", "))
	if rest := all - len(shown); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

func (m *matrix) node() g.Node {
	return h.Section(h.Aria("labelledby", "nodes"), h.H2(h.ID("nodes"), g.Text("Nodes and what keeps the pod away")), lines(
		scroll(h.Aria("labelledby", "nodes"), m.head(), h.TBody(lines(g.Map(m.Rows, matrixRow.node)))),
		g.If(m.Rest != "", note("muted", "and "+m.Rest)),
		h.Details(h.Summary(g.Text("In the scheduler's words")), h.Ul(g.Map(m.Rows, matrixRow.inWords))),
	))
}

func (m *matrix) head() g.Node {
	return h.THead(h.Tr(heading(m.Total), g.Map(m.Columns, func(c column) g.Node { return heading(c.Words, h.Title(c.Cause)) })))
}

func (r matrixRow) node() g.Node {
	cells := g.Map(r.Cells, func(says string) g.Node {
		if says == "" {
			return h.Td()
		}
		return h.Td(h.Span(h.Class("x"), h.Title(says), h.Aria("label", says), h.Role("img"), g.Text("✕")))
	})
	if len(cells) == 0 {
		cells = g.Group{h.Td(g.Text(r.Unkept))}
	}
	return h.Tr(h.Th(h.Scope("row"), g.Text(r.Nodes+" "), muted(g.Text(r.Names))), cells)
}

// inWords is what the scheduler said.
func (r matrixRow) inWords() g.Node {
	var said g.Group
	for n, b := range r.Reasons {
		said = append(said, g.If(n > 0, g.Text("; ")), g.Text(clean(b.Reason)+" "), muted(g.Text("("+clean(b.Plugin)+", "+string(b.Cause)+")")))
	}
	if len(said) == 0 {
		said = g.Group{g.Text("nothing")}
	}
	return h.Li(g.Text(r.Names+": "), said)
}
