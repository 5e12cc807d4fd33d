package web

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/diagnosis"
)

type causeView struct {
	ID, Says, Certainty string
	Nodes               string
	Evidence            []diagnosis.Evidence
}

type hit struct {
	knowledge.Hit
	Link string // empty: nothing that a browser opens
	When moment
}

func (v causeView) node() g.Node {
	sure := ", " + v.Certainty
	if v.Nodes != "" {
		sure += ", on " + v.Nodes
	}
	return h.Div(h.Class("cause"), lines(
		h.H3(g.Text(v.Says)),
		h.P(h.Class("muted"), h.B(g.Text(v.ID)), g.Text(sure)),
		g.If(len(v.Evidence) > 0, h.Ul(h.Class("evidence"), g.Map(v.Evidence, func(e diagnosis.Evidence) g.Node {
			return h.Li(code(clean(e.Ref)), g.Text(" "+clean(e.Fact)))
		}))),
	))
}

func (v hit) node() g.Node {
	name, quote := h.B(g.Text(clean(v.Title))), clean(v.Quote)
	if v.Link != "" {
		name = h.A(href(v.Link), h.Rel("noreferrer noopener"), g.Text(clean(v.Title)))
	}
	source := g.Group{g.Text("(" + clean(v.Source))}
	if v.When.Stamp != "" {
		source = append(source, g.Text(", "), when(v.When), g.Text(" ago"))
	}
	return h.Li(name, g.Text(" "), muted(source, g.Text(")")), g.If(quote != "", h.BlockQuote(g.Text(quote))))
}
