package acceptance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A room that is read before lunch, and a type that one head holds.
const (
	mostLines   = 3700
	mostMethods = 60
)

// Rooms and types that grow past what a reader takes in are cut. Tests and generated files
// do not count.
func TestRoomsAndTypesKeepTheirSize(t *testing.T) {
	lines, methods := map[string]int{}, map[string]int{}
	err := filepath.WalkDir("../../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		room := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.FromSlash("../../../")))
		lines[room] += set.Position(file.FileEnd).Line
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv != nil {
				methods[room+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
		return nil
	})
	if err != nil || len(lines) < 80 {
		t.Fatalf("%d rooms, %v", len(lines), err)
	}
	for room, n := range lines {
		if n > mostLines {
			t.Errorf("%s has %d lines, at most %d", room, n, mostLines)
		}
	}
	for of, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods, at most %d", of, n, mostMethods)
		}
	}
}

// receiver is the name of the type that a method is of.
func receiver(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
