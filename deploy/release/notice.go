package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licensed says whether a file of a module tells under which terms it may be passed on.
var licensed = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([-._].*)?$`)

// notice is the terms of everything that is linked into a program of ours for a platform, each text
// once, after the modules that have it. A module without such a text is an error.
func (m *maker) notice(ctx context.Context, p platform, env []string, program string) ([]byte, error) {
	list, err := m.call(ctx, slices.Concat(p.target(), env), "go", "list", "-deps", "-f",
		`{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}	{{.Dir}}	{{$.Dir}}{{end}}{{end}}`, program)
	if err != nil {
		return nil, err
	}
	root, err := m.call(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	t := terms{owners: map[string][]string{}, seen: map[string]bool{}}
	if err := t.collect("the Go programming language and its standard library", root, root); err != nil {
		return nil, err
	}
	for line := range strings.Lines(list) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			continue // of the standard library, or ours
		}
		if err := t.collect(f[0], f[1], f[2]); err != nil {
			return nil, err
		}
	}
	return t.write(), nil
}

// terms are the texts of modules.
type terms struct {
	owners map[string][]string // whose text it is, by the text
	seen   map[string]bool     // folders
}

// collect takes the texts beside a package, and of every folder above it within its module.
func (t terms) collect(module, root, dir string) error {
	for at := dir; strings.HasPrefix(at, root) && !t.seen[at]; at = filepath.Dir(at) {
		t.seen[at] = true
		texts, err := textsIn(at)
		if err != nil {
			return fmt.Errorf("read the terms of %s: %w", module, err)
		}
		if at == root && len(texts) == 0 {
			return errors.New(module + " says nowhere under which terms it may be passed on")
		}
		for name, text := range texts {
			rel, err := filepath.Rel(root, filepath.Join(at, name))
			if err != nil {
				return err
			}
			t.owners[text] = append(t.owners[text], module+" ("+filepath.ToSlash(rel)+")")
		}
	}
	return nil
}

// textsIn gives the texts that lie in a folder, by their names.
func textsIn(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, e := range entries {
		if !licensed.MatchString(e.Name()) || !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out[e.Name()] = string(text)
	}
	return out, nil
}

func (t terms) write() []byte {
	type text struct {
		who  []string
		says string
	}
	var all []text
	for says, who := range t.owners {
		slices.Sort(who)
		all = append(all, text{who, says})
	}
	slices.SortFunc(all, func(a, b text) int { return cmp.Compare(a.who[0], b.who[0]) })
	var out strings.Builder
	out.WriteString("unpend is licensed under the Apache License, Version 2.0: see LICENSE.\nIt contains what follows, each under the terms below it.\n")
	for _, t := range all {
		fmt.Fprintf(&out, "\n%s\n\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(t.who, "\n"), strings.TrimSpace(t.says))
	}
	return []byte(out.String())
}
