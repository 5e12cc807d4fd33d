package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const less = `package less

// Less is what the tests are about.
func Less(a, b int) bool { return a < b }

func Name(a, b string) string { return a + b }

func Both(a, b bool) bool { return !a && b }
`

const lessTest = `package less

import "testing"

func TestLess(t *testing.T) {
	if !Less(1, 2) || Less(2, 1) || Both(true, true) || !Both(false, true) {
		t.Fatal()
	}
}
`

// module is a folder with a module whose package is less.
func module(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll("less/more", 0o755))
	for name, text := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "less/less.go": less, "less/less_test.go": lessTest,
		"less/more/more_test.go": "package more\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/less\"\n)\n\nfunc TestEqual(t *testing.T) {\n\tif less.Less(1, 1) {\n\t\tt.Fatal()\n\t}\n}\n"} {
		must(t, os.WriteFile(filepath.FromSlash(name), []byte(text), 0o600))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Every operator that can be another one is, once for each other one, and nothing else.
func TestMutantsAreAllOperators(t *testing.T) {
	module(t)
	list, err := mutants("less")
	must(t, err)
	var got []string
	for _, m := range list {
		text, err := m.source()
		must(t, err)
		changed := strings.Split(string(text), "\n")[m.at.Line-1]
		got = append(got, m.String()+" | "+changed)
	}
	want := []string{
		"less/less.go:4:37: < became <= | func Less(a, b int) bool { return a <= b }",
		"less/less.go:4:37: < became >= | func Less(a, b int) bool { return a >= b }",
		"less/less.go:6:42: + became - | func Name(a, b string) string { return a - b }",
		"less/less.go:8:39: && became || | func Both(a, b bool) bool { return !a || b }",
		"less/less.go:8:36: ! became nothing | func Both(a, b bool) bool { return a && b }",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What a package's tests, or another's, notice is killed; what nobody notices is named, and
// what does not compile is not counted.
func TestMutantsThatLiveAreNamed(t *testing.T) {
	module(t)
	lives := "lives: less/less.go:4:37: < became <=\n"
	for _, tc := range []struct {
		args, want string
		err        string
	}{
		{"-n 9 -least 76 ./less", lives + "less: " + figures(3, 0, 75) + "all: " + figures(3, 0, 75), "fewer than 76 of 100 are killed"},
		{"-n 9 -least 100 -also ./less/more ./less", "less: " + figures(4, 1, 100) + "all: " + figures(4, 1, 100), "<nil>"},
		{"-n 9 ./less/more", "", "less/more: it has no mutants"},
	} {
		var out strings.Builder
		err := run(t.Context(), strings.Fields(tc.args), &out)
		if err != nil {
			err = fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "./"))
		}
		if fmt.Sprint(err) != tc.err || out.String() != tc.want {
			t.Errorf("%s: %v\n%swant %s\n%s", tc.args, err, out.String(), tc.err, tc.want)
		}
	}
}

func figures(dead, elsewhere, percent int) string {
	const tried = 4
	return fmt.Sprintf("of %d tried (of 5 that there are) %d killed, %d of them by other packages' tests alone; %d live (%d %% killed)\n", tried, dead, elsewhere, tried-dead, percent)
}

// A seed draws the same again, and another seed others.
func TestMutantsAreDrawnBySeed(t *testing.T) {
	module(t)
	draw := func(seed uint64) string {
		list, err := mutants("less")
		must(t, err)
		shuffle(list, seed)
		return fmt.Sprint(list)
	}
	if first, again := draw(1), draw(1); again != first {
		t.Errorf("%s, want %s", again, first)
	}
	drawn := map[string]bool{}
	for seed := range uint64(6) {
		drawn[draw(seed)] = true
	}
	if len(drawn) < 5 {
		t.Errorf("six seeds draw alike: %v", drawn)
	}
}

// Tests that fail of themselves kill every mutant, and say nothing.
func TestMutantsNeedTestsThatPass(t *testing.T) {
	module(t)
	must(t, os.WriteFile("less/less_test.go", []byte(strings.Replace(lessTest, "Less(2, 1)", "Less(1, 2)", 1)), 0o600))
	var out strings.Builder
	if err := run(t.Context(), []string{"./less"}, &out); err == nil || !strings.HasPrefix(err.Error(), "./less: tests fail without a mutant: ") || out.String() != "" {
		t.Errorf("%v\n%s", err, out.String())
	}
}
