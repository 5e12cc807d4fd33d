package built

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pinned is a module of one program that says a word.
func pinned(t *testing.T, word string) Module {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hello")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/hello\n\ngo 1.26\n"), 0o600))
	m := Module{Pins: dir, Packages: []string{"."}, Flags: []string{"-ldflags", "-X main.flag=!"}}
	m.say(t, word)
	return m
}

// say changes what the program is made from.
func (m Module) say(t *testing.T, word string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(m.Pins, "main.go"), []byte("package main\n\nvar flag string\n\nfunc main() { print("+word+", flag) }\n"), 0o600))
}

// says is what the program prints, built now or before.
func (m Module) says(t *testing.T) string {
	t.Helper()
	paths, err := m.Programs(t.Context())
	must(t, err)
	out, err := exec.Command(paths["hello"]).CombinedOutput()
	must(t, err)
	return string(out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// emptyCache is one without programs, whose compiled packages are those of before.
func emptyCache(t *testing.T) {
	t.Helper()
	compiled, err := exec.Command("go", "env", "GOCACHE").Output()
	must(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(compiled)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// A program is built once for what it is made from, and again when that changes.
func TestBuiltOnceForItsPins(t *testing.T) {
	emptyCache(t)
	m := pinned(t, `"one"`)
	if got := m.says(t); got != "one!" {
		t.Errorf("it says %q", got)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", "") // nothing can be built
	if got := m.says(t); got != "one!" {
		t.Errorf("it says %q", got)
	}
	t.Setenv("PATH", path)
	m.say(t, `"two"`)
	if got := m.says(t); got != "two!" {
		t.Errorf("after a change it says %q", got)
	}
	m.Flags = nil
	if got := m.says(t); got != "two" {
		t.Errorf("with other flags it says %q", got)
	}
}

// What cannot be built says why, and is tried again.
func TestNotBuiltSaysWhy(t *testing.T) {
	emptyCache(t)
	m := pinned(t, "nothing")
	for range 2 {
		if paths, err := m.Programs(t.Context()); err == nil || !strings.Contains(err.Error(), "build hello: ") || !strings.Contains(err.Error(), "undefined: nothing") {
			t.Errorf("%v, %v", paths, err)
		}
	}
	m.Pins = t.TempDir()
	if paths, err := m.Programs(t.Context()); err == nil || err.Error() != "no pins in "+m.Pins+": build tests on the machine that runs them" {
		t.Errorf("%v, %v", paths, err)
	}
}
