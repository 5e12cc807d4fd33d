package web

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/unpend/unpend/rca/diagnosis"
)

// when is how long ago something was; nil where that is not known.
func when(m moment) g.Node {
	if m.Stamp == "" {
		return nil
	}
	return h.Time(h.DateTime(m.Stamp), h.Title(m.Text), g.Text(m.Ago))
}

// priced is one line of a price.
func priced(what, class, text string) g.Node {
	return h.Div(h.Dt(g.Text(what)), h.Dd(g.If(class != "", h.Class(class)), g.Text(text)))
}

// price is what a fix brings and costs.
func price(f fixView) g.Node {
	risk := string(f.Risk)
	return h.Dl(h.Class("price"), lines(priced("Runs", "", f.Runs), priced("Stops", "", f.Stops), priced("Takes", "", f.Takes), priced("Risk", "risk-"+risk, risk)))
}

func podCode(p diagnosis.PodName) g.Node { return code(podName(p)) }

// stopped is who a fix stops, and whether they run again.
func stopped(f fixView) g.Group {
	var out g.Group
	if len(f.Who) > 0 {
		out = append(out, h.P(g.Text("Stops "), listed(f.Who, podCode), g.If(f.More > 0, g.Textf(" and %d more", f.More)), g.Text(".")))
	}
	switch {
	case f.Fate == "":
	case f.Effect != nil && len(f.Effect.ThenWait) > 0:
		out = append(out, h.P(h.Class("warn"), g.Text(f.Fate+": "), listed(f.Effect.ThenWait, podCode), g.Text(".")))
	case f.Proof.Victims == diagnosis.VictimsLand:
		out = append(out, note("muted", f.Fate+"."))
	default:
		out = append(out, note("warn", f.Fate+"."))
	}
	return out
}

// pager is which part of a list is on this page, and the ways to the others.
func pager(what string, from, to, all int, before, next string) g.Node {
	return h.P(h.Class("pages"), g.Textf("%s%d–%d of %d", what, from, to, all), toPage(before, "prev", "Before"), toPage(next, "next", "Next"))
}

func toPage(to, rel, says string) g.Node {
	if to == "" {
		return nil
	}
	return g.Group{g.Text(" "), h.A(href(to), h.Rel(rel), g.Text(says))}
}

// scroll has a table that is wider than the screen read sideways.
func scroll(label g.Node, table ...g.Node) g.Node {
	return h.Div(h.Class("scroll"), h.TabIndex("0"), h.Role("region"), label, h.Table(lines(table...)))
}

func heading(text string, more ...g.Node) g.Node {
	return h.Th(h.Scope("col"), g.Group(more), g.Text(text))
}

// key is one colour of a drawing, in its legend.
func key(class, text string) g.Node { return h.Span(h.Class("k "+class), g.Text(text)) }

func legend(keys ...g.Node) g.Node {
	var out g.Group
	for n, k := range keys {
		if n > 0 {
			out = append(out, g.Text(" "))
		}
		out = append(out, k)
	}
	return h.P(h.Class("legend"), out)
}
