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

const (
	// switchVariable of the environment says which mutants are on, by their numbers from 1 on,
	// with commas.
	switchVariable = "UNPEND_MUTANTS"
	// metVariable names a file for the numbers of those that are come by, a line each.
	metVariable = "UNPEND_MUTANTS_MET"
)

// switches is the source of what mutated code calls. The first of the alternatives is what
// stands in the source, the others belong to the numbers given.
const switches = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

var mutantsThatAreOn = func() map[int]bool {
	on := map[int]bool{}
	for number := range strings.SplitSeq(os.Getenv("` + switchVariable + `"), ",") {
		n, _ := strconv.Atoi(number)
		on[n] = true
	}
	return on
}()

var mutantsMet sync.Map

func mutantOf(numbers []int, alternatives ...func() bool) bool {
	for i, n := range numbers {
		if mutantsThatAreOn[n] {
			return alternatives[i+1]()
		}
	}
	if _, known := mutantsMet.LoadOrStore(numbers[0], true); !known {
		mutantsAreMet(numbers)
	}
	return alternatives[0]()
}

func mutantsAreMet(numbers []int) {
	name := os.Getenv("` + metVariable + `")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	for _, n := range numbers {
		fmt.Fprintln(f, n)
	}
}
`

// switched is sources in which every mutant of the list is there and none is on, by file,
// with the numbers of those that can be so: whose operator makes a truth value. One build
// serves all of them. The others have no number.
func switched(list []mutant) (sources map[string]string, numbers map[mutant]int, err error) {
	sources, numbers = map[string]string{}, map[mutant]int{}
	byFile := map[string]map[int][]mutant{}
	for _, m := range list {
		if at := byFile[m.file]; at == nil {
			byFile[m.file] = map[int][]mutant{}
		}
		byFile[m.file][m.at.Offset] = append(byFile[m.file][m.at.Offset], m)
	}
	for _, name := range slices.Sorted(keys(byFile)) {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		e := editor{text: string(text)}
		ast.Inspect(file, func(n ast.Node) bool {
			e.look(set, n, byFile[name], numbers)
			return true
		})
		if len(e.edits) == 0 {
			continue
		}
		sources[name] = e.between(0, len(text))
		sources[filepath.Join(filepath.Dir(name), "mutants_that_are_on.go")] = fmt.Sprintf(switches, file.Name.Name)
	}
	return sources, numbers, nil
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// editor rewrites one file.
type editor struct {
	text  string
	edits []edit // outer ones before those inside
}

// edit replaces a part of the text, by offsets.
type edit struct {
	from, to int
	by       func() string
}

// look adds the edit of a node whose operator makes a truth value and has mutants.
func (e *editor) look(set *token.FileSet, n ast.Node, at map[int][]mutant, numbers map[mutant]int) {
	var x, y ast.Expr
	var from token.Pos
	switch n := n.(type) {
	case *ast.BinaryExpr:
		x, y, from = n.X, n.Y, n.OpPos
	case *ast.UnaryExpr:
		y, from = n.X, n.OpPos
	default:
		return
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	list := at[offset(from)]
	if len(list) == 0 || !truth[list[0].from] {
		return
	}
	ids := make([]string, len(list))
	for i, m := range list {
		numbers[m] = len(numbers) + 1
		ids[i] = fmt.Sprint(numbers[m])
	}
	e.edits = append(e.edits, edit{offset(n.Pos()), offset(n.End()), func() string {
		left := ""
		if x != nil {
			left = e.between(offset(x.Pos()), offset(x.End())) + " "
		}
		right := " " + e.between(offset(y.Pos()), offset(y.End()))
		alternatives := []string{"func() bool { return " + left + list[0].from + right + " }"}
		for _, m := range list {
			alternatives = append(alternatives, "func() bool { return "+left+m.to+right+" }")
		}
		return "mutantOf([]int{" + strings.Join(ids, ", ") + "}, " + strings.Join(alternatives, ", ") + ")"
	}})
}

var truth = map[string]bool{"<": true, "<=": true, ">": true, ">=": true, "==": true, "!=": true, "&&": true, "||": true, "!": true}

// between is a part of the text with its edits made.
func (e *editor) between(from, to int) string {
	var out strings.Builder
	for _, d := range e.edits {
		if d.from >= from && d.to <= to { // else it is elsewhere, inside of one that was made, or around
			out.WriteString(e.text[from:d.from] + d.by())
			from = d.to
		}
	}
	return out.String() + e.text[from:to]
}
