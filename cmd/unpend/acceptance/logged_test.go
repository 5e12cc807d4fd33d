package acceptance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The fields of log lines have one vocabulary: each that the code writes stands in the table of
// the guide for operators, with one meaning, and each that stands there is written.
func TestOneVocabularyOfLogs(t *testing.T) {
	guide, err := os.ReadFile("../../../deploy/README.md")
	must(t, err)
	_, table, found := strings.Cut(string(guide), "<!-- log -->\n")
	table, _, ends := strings.Cut(table, "<!-- end of log -->")
	if !found || !ends {
		t.Fatal("the guide has no table of log fields")
	}
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-zA-Z]+)` \\| \\S").FindAllStringSubmatch(table, -1) {
		told = append(told, m[1])
	}
	written := map[string]string{} // by who wrote it first
	must(t, filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && len(d.Name()) > 2):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				for _, key := range keysOf(call) {
					if key == "" {
						t.Errorf("%s: a field of a log line is not a word that is written there", files.Position(call.Pos()))
					} else if written[key] == "" {
						written[key] = files.Position(call.Pos()).String()
					}
				}
			}
			return true
		})
		return nil
	}))
	for key, by := range written {
		if !slices.Contains(told, key) {
			t.Errorf("%s: the field %q of a log line is not in the table of deploy/README.md", by, key)
		}
	}
	for _, key := range told {
		if written[key] == "" {
			t.Errorf("deploy/README.md tells of a field %q that no log line has", key)
		}
	}
	if len(written) < 20 || !slices.IsSorted(told) {
		t.Errorf("%d fields were found; the table has %q", len(written), told)
	}
}

// keysOf are the fields of a log line; an empty one cannot be read off the code.
func keysOf(call *ast.CallExpr) []string {
	method, is := call.Fun.(*ast.SelectorExpr)
	if !is || !slices.Contains([]string{"Debug", "Info", "Warn", "Error", "DebugContext", "InfoContext", "WarnContext", "ErrorContext"}, method.Sel.Name) {
		return nil
	}
	switch on := method.X.(type) {
	case *ast.SelectorExpr:
		if !strings.EqualFold(on.Sel.Name, "logger") {
			return nil
		}
	case *ast.Ident:
		if !strings.EqualFold(on.Name, "logger") && on.Name != "slog" {
			return nil
		}
	default:
		return nil
	}
	first := 1
	if strings.HasSuffix(method.Sel.Name, "Context") {
		first = 2
	}
	var out []string
	for i := first; i < len(call.Args); i += 2 {
		key := ""
		if word, is := call.Args[i].(*ast.BasicLit); is && word.Kind == token.STRING {
			key, _ = strconv.Unquote(word.Value)
		}
		out = append(out, key)
	}
	return out
}
