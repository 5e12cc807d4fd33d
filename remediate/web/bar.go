package web

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (v *drawingView) node() g.Node {
	return part("gpu", "The GPU that matters",
		h.P(h.B(g.Text(v.GPU)), g.Text(" "), muted(g.Text(v.Product))),
		h.Figure(h.FigCaption(g.Text("Now")), v.Before.node()),
		g.If(v.Note != "", h.P(g.Text(v.Note))),
		g.Iff(v.After != nil, func() g.Node { return h.Figure(h.FigCaption(g.Text(v.AfterWhat)), v.After.node()) }),
		legend(key("held", "held"), key("idle", "held by nobody"), key("free", "no instance"), key("unknown", "holder unknown"), muted(g.Text("numbers are memory slices"))))
}

// node draws a GPU's memory.
func (b *bar) node() g.Node {
	if b.Broken {
		return note("muted", "The report has instances that overlap: not drawn.")
	}
	return h.SVG(h.Class("gpu"), viewBox(b.Width, b.Height), h.Role("img"), h.Aria("label", b.Says),
		lines(g.Map(b.Cells, cell.node)), g.Map(b.Ticks, tick.node), newline)
}

func viewBox(width, height int) g.Node {
	return g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", width, height))
}

func (c cell) node() g.Node {
	above := 27 // the middle
	if c.Holder != "" {
		above = 19
	}
	return g.El("g", h.Class("c-"+c.Kind), h.TitleEl(g.Text(c.Title)),
		g.El("rect", number("x", c.X), number("y", 0), number("width", c.W), number("height", barHeight), number("rx", 3)),
		g.If(c.Profile != "", lettering("p", c.Middle, above, c.Profile)),
		g.If(c.Holder != "", lettering("h", c.Middle, 34, c.Holder)))
}

func (t tick) node() g.Node { return lettering("t", t.X, 60, fmt.Sprint(t.N)) }

func lettering(class string, x, y int, text string) g.Node {
	return g.El("text", h.Class(class), number("x", x), number("y", y), g.Text(text))
}
