package web

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// consentPage is all that somebody says yes to.
type consentPage struct {
	ID, Headline string
	Fix          fixView
	Steps        []string
	Persons      string
	Held         string
	Denied       string // why this reader cannot decide
}

// node has the button after all that it does.
func (b consentPage) node() g.Node {
	return g.Group{
		h.P(h.A(href(incidentPath(b.ID)), g.Text(b.Headline))),
		h.H1(g.Textf("Fix %d: %s", b.Fix.ID, clean(b.Fix.Title))),
		price(b.Fix),
		stopped(b.Fix),
		g.If(len(b.Fix.Who) == 0, h.P(g.Text("Stops "+b.Fix.Stops+"."))),
		h.P(b.Fix.verdict()),
		h.H2(g.Text("Every step")),
		h.Ol(g.Map(b.Steps, item)),
		note("muted", "What goes wrong on the way is taken back. Nothing else is done by this plan."),
		note("warn", b.Persons),
		h.P(g.Text("Plan "), h.Code(h.Class("hash"), g.Text(b.Fix.Plan))),
		b.choice(),
	}
}

// choice is the button, or why there is none.
func (b consentPage) choice() g.Node {
	switch {
	case b.Held != "":
		return note("warn", "Held back now: "+b.Held)
	case b.Denied != "":
		return note("warn", b.Denied)
	}
	return g.Group{
		b.form(decision("danger", "approve", "Approve: stops "+b.Fix.Stops+", plan "+shortPlan(b.Fix.Plan))),
		b.form(h.Label(h.For("reason"), g.Text("Or say no, and why")),
			h.Input(h.ID("reason"), h.Name("reason"), h.MaxLength("1000"), h.AutoComplete("off")),
			decision("quiet", "reject", "Reject")),
	}
}

func (b consentPage) form(parts ...g.Node) g.Node {
	return h.Form(h.Method("post"), own("action", fixPath(b.ID, b.Fix.ID)), lines(
		h.Input(h.Type("hidden"), h.Name("plan"), h.Value(b.Fix.Plan)), g.Group(parts)))
}

func decision(class, value, says string) g.Node {
	return h.Button(h.Class(class), h.Name("decision"), h.Value(value), g.Text(says))
}
