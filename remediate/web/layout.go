package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// head is of every page.
type head struct {
	Title   string
	User    string // who is signed in
	At      string // which of the main pages it is
	Refresh int    // seconds, for those without JavaScript; 0: never
	Cluster string
	Search  bool // there is something to search
}

// render shows a page; what it is made of has gone through a veil.
func (p *Page) render(w http.ResponseWriter, r *http.Request, status int, top head, body g.Node) {
	top.Cluster, top.Search = clean(p.opts.Cluster), p.opts.Search != nil
	var out bytes.Buffer
	p.files.layout(top, body).Render(&out) //nolint:errcheck // to memory
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, r, status, out.Bytes(), zip(out.Bytes(), gzip.BestSpeed))
}

func (f files) layout(top head, body g.Node) g.Node {
	return g.Group{h.Doctype(newline), h.HTML(h.Lang("en"), lines(
		h.Head(f.head(top)),
		h.Body(lines(
			h.A(h.Class("skip"), href("#main"), g.Text("Skip to the content")),
			header(top),
			h.Main(h.ID("main"), h.TabIndex("-1"), lines(body)),
		)),
	)), newline}
}

// htmx is told to do nothing that the policy forbids.
const htmx = `{"includeIndicatorStyles":false,"allowEval":false,"selfRequestsOnly":true,"historyEnabled":false}`

func (f files) head(top head) g.Group {
	title := top.Title + " · unpend"
	if top.Cluster != "" {
		title += " · " + top.Cluster
	}
	return lines(
		h.Meta(h.Charset("utf-8")),
		h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
		h.Meta(h.Name("color-scheme"), h.Content("light dark")),
		h.Meta(h.Name("htmx-config"), h.Content(htmx)),
		h.TitleEl(g.Text(title)),
		h.Link(h.Rel("icon"), href(f.path("unpend.svg")), h.Type("image/svg+xml")),
		h.Link(h.Rel("stylesheet"), href(f.path("unpend.css"))),
		f.refresh(top.Refresh),
	)
}

// refresh has the page shown as it is now: by scripts of ours, or by loading it again.
func (f files) refresh(seconds int) g.Node {
	if seconds == 0 {
		return nil
	}
	return g.Group{
		h.NoScript(h.Meta(g.Attr("http-equiv", "refresh"), h.Content(strconv.Itoa(seconds)))),
		h.Script(own("src", f.path("htmx.min.js")), h.Defer()),
		h.Script(own("src", f.path("sse.min.js")), h.Defer()),
	}
}

func header(top head) g.Node {
	parts := g.Group{brand(), g.If(top.Cluster != "", h.Span(h.Class("where"), g.Text(top.Cluster)))}
	if top.User != "" {
		parts = append(parts,
			h.Nav(h.Aria("label", "Main"), lines(
				h.A(href("/"), current(top.At == "incidents"), g.Text("Incidents")),
				h.A(href("/cluster"), current(top.At == "cluster"), g.Text("GPUs")),
				g.Iff(top.Search, func() g.Node { return h.A(href("/search"), current(top.At == "search"), g.Text("Search")) }))),
			h.Form(h.Class("out"), h.Method("post"), own("action", "/sign-out"),
				h.Span(h.Class("user"), g.Text(clean(top.User))), g.Text(" "), h.Button(h.Class("quiet"), g.Text("Sign out"))))
	}
	return h.Header(h.Class("top"), lines(parts))
}

func current(is bool) g.Node { return g.If(is, h.Aria("current", "page")) }

func brand() g.Node {
	block := func(class g.Node, x string) g.Node {
		return g.El("rect", class, g.Attr("x", x), g.Attr("y", "3"), g.Attr("width", "6"), g.Attr("height", "10"), g.Attr("rx", "1.5"))
	}
	return h.A(h.Class("brand"), href("/"),
		h.SVG(g.Attr("viewBox", "0 0 16 16"), h.Aria("hidden", "true"), block(nil, "1"), block(h.Class("gap"), "9")), g.Text("unpend"))
}

// message is one sentence, and where to go from there.
type message struct{ Title, Text, Back, BackSays string }

func (m message) node() g.Node {
	return g.Group{h.H1(g.Text(m.Title)), h.P(g.Text(m.Text)), h.P(h.A(href(m.Back), g.Text(m.BackSays)))}
}

// say shows one message.
func (p *Page) say(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	p.render(w, r, status, head{Title: title}, message{title, text, "/", "All incidents"}.node())
}
