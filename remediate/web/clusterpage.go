package web

import (
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/unpend/unpend/rca/placement"
)

func (b clusterPage) node() g.Node {
	parts := g.Group{h.H1(g.Text("GPUs"))}
	switch {
	case b.Denied:
		return append(parts, h.P(g.Text("You may not list nodes. Ask for the right to "), code("list nodes"), g.Text(": "), code("kubectl auth can-i list nodes"), g.Text(" says when you have it.")))
	case b.All == 0:
		return append(parts, h.P(h.Class("empty"), g.Text("No node has reported its GPUs. The probe does, on every GPU node: the chart's "), code("probe.enabled"), g.Text(".")))
	}
	return append(parts, b.sums(), g.Iff(len(b.Profiles) > 0, b.profiles),
		legend(key("held", "held"), key("idle", "idle MIG instance"), key("free", "free"), key("unknown", "not known"), key("unhealthy", "unhealthy")),
		h.Ul(h.Class("nodes"), lines(g.Map(b.Nodes, nodeView.node))),
		pager("Nodes ", b.From, b.To, b.All, b.Prev, b.Next))
}

func (b clusterPage) sums() g.Node {
	gpus := strconv.Itoa(b.GPUs)
	if b.Known != b.GPUs {
		gpus += fmt.Sprintf(", %d known", b.Known)
	}
	parts := g.Group{summed("Nodes", strconv.Itoa(b.All)), summed("GPUs", gpus)}
	if b.Whole > 0 {
		parts = append(parts, summed("Whole GPUs held by nobody", fmt.Sprintf("%d of %d", b.WholeFor, b.Whole)))
	}
	if len(b.Profiles) > 0 {
		parts = append(parts, summed("Memory slices held by nobody", strconv.Itoa(b.Free)), summed("Of them in pieces too small", b.Fragmentation))
	}
	return h.Dl(h.Class("price"), lines(parts))
}

func summed(what, text string) g.Node { return priced(what, "", text) }

func (b clusterPage) profiles() g.Node {
	row := func(t placement.Tally) g.Node {
		return h.Tr(h.Th(h.Scope("row"), g.Text(clean(t.Profile))), h.Td(g.Text(strconv.Itoa(t.Placeable))), h.Td(g.Text(strconv.Itoa(t.Unusable))))
	}
	return h.Details(h.Summary(g.Text("What the free slices can hold, by MIG profile")), scroll(h.Aria("label", "Free slices by MIG profile"),
		h.THead(h.Tr(heading("MIG profile"), heading("fit at once"), heading("slices left over"))),
		h.TBody(g.Map(b.Profiles, row))))
}

func (n nodeView) node() g.Node {
	says := n.Product
	if n.Stale {
		says += " · its report is " + n.Age + " old: not believed"
	}
	return h.Li(g.If(n.Stale, h.Class("stale")), h.H2(g.Text(n.Name)), h.P(h.Class("muted"), g.Text(says)), newline,
		h.Div(h.Class("gpus"), g.Map(n.GPUs, gpuView.node)))
}

func (v gpuView) node() g.Node {
	return h.SVG(viewBox(v.Slices, 2), g.Attr("preserveAspectRatio", "none"), h.Role("img"), h.Aria("label", v.Says), h.TitleEl(g.Text(v.Says)),
		g.Map(v.Cells, func(c cell) g.Node {
			return g.El("rect", h.Class("c-"+c.Kind), number("x", c.X), number("width", c.W), number("height", 2))
		}))
}
