package web

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
)

const (
	// maxQuery is how long a search may be, in bytes, and mostHits how much it shows.
	maxQuery = 400
	mostHits = 10
	// mostSpaces are asked about until a reader may read the pods of one.
	mostSpaces = 100
)

// searchPage is what it shows.
type searchPage struct {
	Query string
	Asked bool
	Says  string // why nothing is shown
	Hits  []hit
}

// search shows what the team has said before that is like a reader's words, to who may read
// the pods of some namespace; names of the others are covered.
func (p *Page) search(w http.ResponseWriter, r *http.Request, who *reader) {
	body := searchPage{Query: strings.TrimSpace(r.URL.Query().Get("q"))}
	if body.Asked = body.Query != ""; body.Asked {
		if err := p.hits(r.Context(), who, &body); err != nil {
			p.trouble(w, r, err)
			return
		}
	}
	p.render(w, r, http.StatusOK, head{Title: "Search", User: who.user, At: "search"}, body.node())
}

func (p *Page) hits(ctx context.Context, who *reader, body *searchPage) error {
	if len(body.Query) > maxQuery {
		body.Says = "That is too long: a few words, names or an error message find more."
		return nil
	}
	some, err := p.readsSome(ctx, who)
	if err != nil {
		return err
	}
	if !some {
		body.Says = "You may read the pods of no namespace, and so not what is said of them."
		return nil
	}
	found, err := p.opts.Search(ctx, body.Query, mostHits)
	if errors.Is(err, plan.ErrRefused) {
		body.Says = "Nothing can be searched: " + err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	v, err := p.veil(ctx, who, []notice.Proposal{{}})
	if err != nil {
		return err
	}
	if !v.all {
		v.note(reflect.ValueOf(found))
		found = v.copy(reflect.ValueOf(found)).Interface().([]knowledge.Hit) //nolint:forcetypeassert // it is a copy
	}
	for _, k := range found {
		body.Hits = append(body.Hits, hit{k, linkOf(k.URL), at(k.At, p.opts.Now())})
	}
	if len(found) == 0 {
		body.Says = "Nothing that the team has said is like it."
	}
	return v.err
}

// readsSome says whether a reader may read the pods of any namespace.
func (p *Page) readsSome(ctx context.Context, who *reader) (bool, error) {
	spaces, err := p.names.get(ctx)
	if err != nil {
		return false, err
	}
	for _, space := range append([]string{""}, spaces[:min(mostSpaces, len(spaces))]...) {
		if yes, err := who.mayRead(ctx, space); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

func (b searchPage) node() g.Node {
	return g.Group{h.H1(g.Text("Search")),
		h.P(h.Class("muted"), g.Text("What the team has said before: free words, names and error messages, in any mixture.")),
		h.Form(h.Class("filter"), h.Method("get"), h.Role("search"), own("action", "/search"), lines(
			h.Label(h.For("q"), g.Text("Search for")),
			h.Input(h.ID("q"), h.Name("q"), h.Type("search"), h.MaxLength("400"), h.Value(b.Query)),
			h.Button(h.Class("quiet"), g.Text("Search")))),
		note("empty", b.Says),
		g.If(len(b.Hits) > 0, h.Ul(h.Class("rows"), lines(g.Map(b.Hits, hit.node))))}
}
