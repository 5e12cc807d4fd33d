package web

import (
	"fmt"
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// node has two parts that are loaded again on their own: the plans, and what was found.
func (b incidentPage) node() g.Node {
	self := incidentPath(b.ID)
	events := "/events?incident=" + url.QueryEscape(b.ID) + "&finding=" + b.SeenFinding + "&plans=" + b.SeenPlans
	return h.Div(g.Attr("hx-ext", "sse"), own("sse-connect", events), lines(
		h.Div(h.ID("plans"), h.Aria("live", "polite"), live("plans", self, "plans"), lines(b.resolved(), g.Map(b.Said, saidView.node), g.Map(b.Plans, planView.node))),
		h.Div(h.ID("finding"), live("finding", self, "finding"), lines(h.H1(g.Text(b.Headline)), b.finding(), b.foot())),
	))
}

func (b incidentPage) resolved() g.Node {
	if b.Over.Stamp == "" {
		return nil
	}
	return h.P(h.Class("resolved"), g.Text("Resolved: nobody of it waits any more, since "), when(b.Over), g.Text(" ("+b.Over.Text+")."))
}

func (b incidentPage) finding() g.Group {
	if !b.Found {
		return nil
	}
	return g.Group{
		h.P(h.Class("who"), g.Textf("%s (%s): %s for ", b.Workload, b.Kind, b.Waiting), when(b.Since), g.Text("; wants "+b.Wants)),
		part("why", "Why", g.Map(b.Causes, causeView.node), g.Iff(len(b.Causes) == 0, b.noCause)),
		g.Iff(b.Drawing != nil, func() g.Node { return b.Drawing.node() }),
		part("fixes", "Fixes", g.Map(b.Fixes, func(f fixView) g.Node { return f.node(b.ID) }), g.Iff(len(b.Fixes) == 0, b.noFix), g.Iff(b.LeftOut > 0, b.more)),
		g.Iff(b.Matrix != nil, func() g.Node { return b.Matrix.node() }),
		g.If(len(b.Unread) > 0, part("unread", "Could not be read", h.Ul(g.Map(b.Unread, item)))),
		g.If(len(b.Knowledge) > 0, part("known", "Seen before", h.Ul(g.Map(b.Knowledge, hit.node)))),
		g.If(len(b.Words) > 0, part("worded", clean(b.Model), h.BlockQuote(lines(h.Ul(g.Map(b.Words, item)))))),
	}
}

// part is a section under its heading.
func part(id, title string, parts ...g.Node) g.Node {
	return h.Section(h.Aria("labelledby", id), h.H2(h.ID(id), g.Text(title)), lines(parts...))
}

func (b incidentPage) noCause() g.Node {
	if b.Alike == "" {
		return h.P(g.Text("No cause is known."))
	}
	return h.P(g.Text("The same keeps it waiting as "), b.alike(), g.Text("."))
}

func (b incidentPage) noFix() g.Node {
	if b.Alike == "" {
		return h.P(g.Text("No fix is known."))
	}
	return h.P(g.Text("Its fixes stand with "), b.alike(), g.Text("."))
}

func (b incidentPage) alike() g.Node { return h.A(href(incidentPath(b.Alike)), g.Text(b.Alike)) }

func (b incidentPage) more() g.Node {
	return h.P(g.Text(fmt.Sprintf("and %d more: ", b.LeftOut)), b.command())
}

func (b incidentPage) command() g.Node { return code("kubectl unpend show " + b.ID) }

func (b incidentPage) foot() g.Node {
	foot := g.Group{g.Text(b.ID)}
	if b.Facts.Stamp != "" {
		foot = append(foot, g.Text(" · facts read "), when(b.Facts), g.Text(" ago"))
	}
	return h.P(h.Class("foot"), foot, g.Text(" · "), b.command())
}
