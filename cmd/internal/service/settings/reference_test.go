package settings

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of the configuration's keys")

// operations has, between two marks, every key of the configuration.
const operations = "../../../../deploy/README.md"

// The guide for operators has every key of the configuration with what the code says of it, and
// nothing else: a key without a word about it is a mistake.
func TestEveryKeyIsInTheGuide(t *testing.T) {
	guide, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- keys -->\n", "<!-- end of keys -->"
	from, to := bytes.Index(guide, []byte(begin)), bytes.Index(guide, []byte(end))
	if from < 0 || to < from {
		t.Fatalf("%s has no %q … %q", operations, begin, end)
	}
	from += len(begin)
	r := keyReader{t: t, types: map[string]*ast.StructType{}}
	r.declared("settings", ".")
	r.declared("library", "../../library")
	r.keys("", "settings", r.types["settings.Config"])
	table := "| key | what | default |\n| --- | --- | --- |\n" + strings.Join(r.rows, "")
	if *update {
		out := append(append(bytes.Clone(guide[:from]), table...), guide[to:]...)
		if err := os.WriteFile(operations, out, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := string(guide[from:to]); got != table {
		t.Errorf("%s has another table of keys: write it with -update; it should be\n%s", operations, table)
	}
}

type keyReader struct {
	t     *testing.T
	types map[string]*ast.StructType // by room and name
	rows  []string
}

// declared notes the structs that a room declares.
func (r *keyReader) declared(room, dir string) {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			r.t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					r.types[room+"."+spec.Name.Name] = s
				}
			}
			return true
		})
	}
}

// defaultOf is what the last parentheses of a comment hold.
var defaultOf = regexp.MustCompile(`^(.*?)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\.?$`)

func (r *keyReader) keys(above, room string, s *ast.StructType) {
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue // of tests
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		name, rest, _ := strings.Cut(tag.Get("json"), ",")
		of, inner := r.inner(room, f.Type)
		if strings.Contains(rest, "inline") || name == "" {
			r.keys(above, of, inner)
			continue
		}
		key := strings.TrimPrefix(above+"."+name, ".")
		if list, ok := f.Type.(*ast.ArrayType); ok {
			if room, element := r.inner(room, list.Elt); element != nil {
				key += "[]"
				of, inner = room, element
			}
		}
		if inner != nil {
			r.keys(key, of, inner)
			continue
		}
		says := strings.Join(strings.Fields(f.Doc.Text()+f.Comment.Text()), " ")
		if says == "" {
			r.t.Errorf("%s: its field says nothing", key)
		}
		by := ""
		if m := defaultOf.FindStringSubmatch(says); m != nil && !strings.Contains(m[2], "…") { // else it is how such a value begins
			says, by = m[1], m[2]
		}
		r.rows = append(r.rows, fmt.Sprintf("| `%s` | %s | %s |\n", key, strings.ReplaceAll(says, "|", `\|`), by))
	}
}

// inner is the struct that a field holds, and its room, where one of these declares it.
func (r *keyReader) inner(room string, e ast.Expr) (string, *ast.StructType) {
	switch e := e.(type) {
	case *ast.StructType:
		return room, e
	case *ast.StarExpr:
		return r.inner(room, e.X)
	case *ast.Ident:
		return room, r.types[room+"."+e.Name]
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			return of.Name, r.types[of.Name+"."+e.Sel.Name]
		}
	}
	return room, nil
}
