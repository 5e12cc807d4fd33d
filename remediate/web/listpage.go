package web

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (b listPage) node() g.Node {
	parts := g.Group{h.H1(g.Textf("%d waiting", b.Waiting)), g.Iff(len(b.Namespaces) > 0, b.filter)}
	if len(b.Rows) == 0 {
		parts = append(parts, note("empty", "Nothing waits in the namespaces that you may read."))
	} else {
		parts = append(parts, h.Ul(h.Class("rows"), lines(g.Map(b.Rows, row.node))), pager("", b.From, b.To, b.All, b.Prev, b.Next))
	}
	return h.Div(g.Attr("hx-ext", "sse"), own("sse-connect", "/events?list="+b.Seen), lines(
		h.Div(h.ID("incidents"), live("incidents", b.Query, "list"), lines(parts))))
}

func (b listPage) filter() g.Node {
	options := g.Map(b.Namespaces, func(name string) g.Node {
		return h.Option(g.If(name == b.Namespace, h.Selected()), g.Text(clean(name)))
	})
	return h.Form(h.Class("filter"), h.Method("get"), own("action", "/"), lines(
		h.Label(h.For("namespace"), g.Text("Namespace")),
		h.Select(h.ID("namespace"), h.Name("namespace"), h.Option(h.Value(""), g.Text("all that you may read")), options),
		h.Button(h.Class("quiet"), g.Text("Show"))))
}

func (r row) node() g.Node {
	return h.Li(g.If(r.Over, h.Class("over")), h.A(href(incidentPath(r.ID)), g.Text(r.Headline)), lines(
		h.P(r.cause(), g.Text(" "+r.whose()+" · "), g.If(r.Over, g.Text("over since ")), g.If(!r.Over, g.Text(r.Pods+", ")), when(r.Since)),
		g.Map(r.Said, saidView.node),
		g.If(r.State != "", note("state", "Plan: "+r.State)),
		g.If(r.Fix != "", note("fix", "▸ "+r.Fix)),
		note("muted", r.Price)))
}

func (r row) cause() g.Node {
	return g.Group{g.If(r.Cause != "", h.B(g.Text(r.Cause))), g.If(r.Certainty != "", g.Text(" ("+r.Certainty+")"))}
}

func (r row) whose() string {
	if r.Kind == "" {
		return r.Workload
	}
	return r.Workload + " (" + r.Kind + ")"
}
