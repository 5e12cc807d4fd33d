package web

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// signInPage is where somebody signs in, and goes on to the next page from.
type signInPage struct{ Next, Error string }

func (b signInPage) node() g.Node {
	return h.Div(h.Class("sign"), lines(
		h.H1(g.Text("Sign in")),
		h.P(g.Text("With a Kubernetes token of your own. You are shown what it may read, and what you decide is done as you.")),
		g.If(b.Error != "", h.P(h.Class("error"), h.Role("alert"), g.Text(b.Error))),
		h.Form(h.Method("post"), own("action", "/sign-in"), lines(
			h.Input(h.Type("hidden"), h.Name("next"), h.Value(b.Next)),
			h.Label(h.For("token"), g.Text("Token")),
			h.Input(h.ID("token"), h.Name("token"), h.Type("password"), h.Required(), h.AutoComplete("off"), h.AutoFocus(), g.Attr("spellcheck", "false")),
			h.Button(g.Text("Sign in")))),
		h.P(h.Class("muted"), g.Text("For example of a ServiceAccount: "), code("kubectl create token NAME"), g.Text(". It stays in the memory of the service, for 8 hours at most and 1 hour unused."))))
}
