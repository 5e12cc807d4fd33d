package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is a source file with one operator changed.
type mutant struct {
	file     string
	at       token.Position
	from, to string
}

func (m mutant) String() string {
	is := m.to
	if is == "" {
		is = "nothing"
	}
	return fmt.Sprintf("%s:%d:%d: %s became %s", m.file, m.at.Line, m.at.Column, m.from, is)
}

// source is the mutant's file.
func (m mutant) source() ([]byte, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return nil, err
	}
	return slices.Concat(text[:m.at.Offset], []byte(m.to), text[m.at.Offset+len(m.from):]), nil
}

// line is the mutant's, as it stands in its file but for the spaces around it.
func (m mutant) line() (string, error) {
	text, err := m.source()
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.Split(string(text), "\n")[m.at.Line-1]), nil
}

// operators are what each may become. What does not compile then, as the difference of
// two strings, is no mutant.
var operators = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD},
	token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.INC: {token.DEC}, token.DEC: {token.INC},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
}

// mutants are all of the package in a folder, in the order of its sources. Tests and
// generated files have none.
func mutants(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go")) // sorted
	if err != nil {
		return nil, err
	}
	var out []mutant
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(file) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			pos, op := operator(n)
			for _, to := range operators[op] {
				out = append(out, mutant{name, set.Position(pos), op.String(), to.String()})
			}
			if op == token.NOT {
				out = append(out, mutant{name, set.Position(pos), op.String(), ""})
			}
			return true
		})
	}
	return out, nil
}

// operator is that of a node, if it has one.
func operator(n ast.Node) (token.Pos, token.Token) {
	switch x := n.(type) {
	case *ast.BinaryExpr:
		return x.OpPos, x.Op
	case *ast.UnaryExpr:
		return x.OpPos, x.Op
	case *ast.IncDecStmt:
		return x.TokPos, x.Tok
	case *ast.AssignStmt:
		return x.TokPos, x.Tok
	}
	return token.NoPos, token.ILLEGAL
}
