package web

import (
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// newline ends a line of the page's source.
var newline = g.Text("\n")

// lines has each part on a line of its own, so that a person can read the page's source and a
// test compare it. What is nil has none; a group is its parts.
func lines(parts ...g.Node) g.Group {
	return append(g.Group{newline}, ended(parts)...)
}

func ended(parts []g.Node) (out g.Group) {
	for _, part := range parts {
		switch part := part.(type) {
		case nil:
		case g.Group:
			out = append(out, ended(part)...)
		default:
			out = append(out, part, newline)
		}
	}
	return out
}

// listed has a comma between what it is made of.
func listed[T any](all []T, of func(T) g.Node) (out g.Group) {
	for n, one := range all {
		if n > 0 {
			out = append(out, g.Text(", "))
		}
		out = append(out, of(one))
	}
	return out
}

func code(text string) g.Node { return h.Code(g.Text(text)) }

func muted(parts ...g.Node) g.Node { return h.Span(h.Class("muted"), g.Group(parts)) }

// note is a paragraph of a class; nil where there is no text.
func note(class, text string) g.Node {
	if text == "" {
		return nil
	}
	return h.P(h.Class(class), g.Text(text))
}

// item is a text of the cluster in a list.
func item(text string) g.Node { return h.Li(g.Text(clean(text))) }

// number is an attribute that is a count or a measure.
func number(name string, n int) g.Node { return g.Attr(name, strconv.Itoa(n)) }

// The ways to what is decided and read here.
func incidentPath(id string) string { return "/incidents/" + url.PathEscape(id) }

func fixPath(id string, fix int) string { return incidentPath(id) + "/fixes/" + strconv.Itoa(fix) }

// own is an attribute that a browser loads, or sends something to: a path of ours. With
// anything else there is no such attribute.
func own(name, to string) g.Node {
	if within(to) != to {
		return nil
	}
	return g.Attr(name, to)
}

// href leads to a path of ours, a part of the page, or a document on the web. Anything else
// is no link: other schemes do things.
func href(to string) g.Node {
	if document := linkOf(to); document != "" {
		return h.Href(document)
	}
	if strings.HasPrefix(to, "#") {
		return h.Href(to)
	}
	return own("href", to)
}

// linkOf is an address that a browser may open: a document's on the web. What is in a folder
// has none, and other schemes do things.
func linkOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	return u.String()
}

// live has a part of the page loaded again when the event stream says so.
func live(part, from, event string) g.Group {
	return g.Group{own("hx-get", from), g.Attr("hx-select", "#"+part), g.Attr("hx-swap", "outerHTML"), g.Attr("hx-trigger", "sse:"+event)}
}
