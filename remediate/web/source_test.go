package web_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// ways are what would go around the nodes' escaping, or around own and href.
var ways = map[string]string{
	"Raw": "text as markup", "Rawf": "text as markup", "NodeFunc": "text as markup", "StyleEl": "an inline style", "StyleAttr": "an inline style", "Style": "an inline style",
	"Href": "a link to anywhere", "Src": "a file from anywhere", "SrcSet": "a file from anywhere", "Poster": "a file from anywhere", "Action": "a form to anywhere", "FormAction": "a form to anywhere",
	"IFrame": "another page", "Embed": "another page", "Object": "another page", "Base": "another page's links",
}

// asCode are attributes that are code, or that own and href alone make.
func asCode(name string) bool {
	return strings.HasPrefix(name, "on") || strings.HasPrefix(name, "hx-on") || slices.Contains([]string{"style", "href", "src", "action", "formaction", "srcdoc", "hx-get", "hx-post", "hx-vals", "sse-connect"}, name)
}

// bypasses is what a file does that pages do not.
func bypasses(file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if do, ok := n.(*ast.FuncDecl); ok && do.Recv != nil && do.Name.Name == "Render" {
			found = append(found, "a node of its own")
		}
		if name, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := name.X.(*ast.Ident); ok && (of.Name == "g" || of.Name == "h") && ways[name.Sel.Name] != "" {
				found = append(found, name.Sel.Name+": "+ways[name.Sel.Name])
			}
		}
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		switch name := nameOf(call.Fun); name {
		case "g.El", "g.Attr", "h.Aria", "h.Data", "h.DataAttr", "number":
			first, constant := call.Args[0].(*ast.BasicLit)
			if !constant {
				found = append(found, name+" of a name that is not written there")
			} else if asCode(strings.Trim(first.Value, `"`)) {
				found = append(found, name+" of "+first.Value)
			}
		case "h.Script":
			for _, arg := range call.Args {
				if made, ok := arg.(*ast.CallExpr); !ok || !slices.Contains([]string{"own", "h.Defer"}, nameOf(made.Fun)) {
					found = append(found, "a script in the page")
				}
			}
		}
		return true
	})
	return found
}

func nameOf(called ast.Expr) string {
	switch called := called.(type) {
	case *ast.Ident:
		return called.Name
	case *ast.SelectorExpr:
		if of, ok := called.X.(*ast.Ident); ok {
			return of.Name + "." + called.Sel.Name
		}
	}
	return ""
}

// No page is made of anything but nodes that escape what they are given; what a browser loads,
// opens or sends something to is made by own and href alone, which are in one file.
func TestPagesAreMadeOfNodes(t *testing.T) {
	all, err := os.ReadDir(".")
	must(t, err)
	looked := 0
	for _, e := range all {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		must(t, err)
		var nodes bool
		for _, i := range file.Imports {
			switch name := ""; i.Path.Value {
			case `"maragu.dev/gomponents"`, `"maragu.dev/gomponents/html"`:
				if i.Name != nil {
					name = i.Name.Name
				}
				if nodes = true; name != "g" && name != "h" {
					t.Errorf("%s imports %s as %q, which is not looked at", e.Name(), i.Path.Value, name)
				}
			case `"html/template"`, `"text/template"`, `"maragu.dev/gomponents/components"`, `"maragu.dev/gomponents/http"`:
				t.Errorf("%s imports %s", e.Name(), i.Path.Value)
			}
		}
		if nodes {
			looked++
		}
		found := bypasses(file)
		if e.Name() == "markup.go" { // own, href, live and number
			want := []string{"g.Attr of a name that is not written there", "g.Attr of a name that is not written there", "Href: a link to anywhere", "Href: a link to anywhere"}
			if !slices.Equal(found, want) {
				t.Errorf("markup.go has %q", found)
			}
			continue
		}
		for _, what := range found {
			t.Errorf("%s has %s", e.Name(), what)
		}
	}
	if looked < 10 {
		t.Errorf("%d files were looked at", looked)
	}
}

// The reading finds what it is there for.
func TestBypassesAreFound(t *testing.T) {
	const page = `package web
func (n x) Render(w io.Writer) error { return nil }
var _ = h.P(g.Raw(name), g.Attr(name, "v"), g.Attr("onclick", name), h.A(h.Href(name)), h.Script(g.Text(name)), g.NodeFunc(nil), g.Attr("title", name), h.Script(own("src", name), h.Defer()))`
	file, err := parser.ParseFile(token.NewFileSet(), "page.go", page, 0)
	must(t, err)
	want := []string{"a node of its own", "Raw: text as markup", "g.Attr of a name that is not written there", `g.Attr of "onclick"`, "Href: a link to anywhere", "a script in the page", "NodeFunc: text as markup"}
	if got := bypasses(file); !slices.Equal(got, want) {
		t.Errorf("found %q", got)
	}
}
