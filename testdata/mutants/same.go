package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// same are the mutants that make no difference: the file and its line as they change it,
// with a colon between them. Lines may move, and an entry whose line was edited is an error.
type same map[string]bool

// readSame reads such a file: an entry a line, and lines that begin with # say why. No
// name is no file.
func readSame(name string) (same, error) {
	out := same{}
	if name == "" {
		return out, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out[line] = true
		}
	}
	return out, nil
}

// without is the list of a package's mutants without those that make no difference.
func (s same) without(dir string, list []mutant) ([]mutant, error) {
	stale := maps.Clone(s)
	maps.DeleteFunc(stale, func(entry string, _ bool) bool {
		file, _, _ := strings.Cut(entry, ": ")
		return filepath.Dir(file) != dir
	})
	var out []mutant
	for _, m := range list {
		line, err := m.line()
		if err != nil {
			return nil, err
		}
		entry := filepath.ToSlash(m.file) + ": " + line
		if delete(stale, entry); !s[entry] {
			out = append(out, m)
		}
	}
	if len(stale) > 0 {
		return nil, fmt.Errorf("no mutant any more: %s", strings.Join(slices.Sorted(maps.Keys(stale)), "; "))
	}
	return out, nil
}
