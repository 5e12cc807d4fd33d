package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
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
		{"-n 9 -least 75 ./less", lives + "less: " + figures(3, 0, 75) + "all: " + figures(3, 0, 75), "<nil>"},
		{"-n 9 -least 76 ./less", lives + "less: " + figures(3, 0, 75) + "all: " + figures(3, 0, 75), "fewer than 76 of 100 are killed in less"},
		{"-n 9 -least 100 -also ./less/more ./less", "less: " + figures(4, 1, 100) + "all: " + figures(4, 1, 100), "<nil>"},
		{"-n 9 -also ./less/more -also-run TestOther ./less", lives + "less: " + figures(3, 0, 75) + "all: " + figures(3, 0, 75), "<nil>"},
		{"-n 9 ./less/more", "", "./less/more: it has no mutants"},
		{"-n 9 -only less.go ./less", lives + "less: " + figures(3, 0, 75) + "all: " + figures(3, 0, 75), "<nil>"},
		{"-n 9 -only more.go ./less", "", "./less: it has no mutants"},
	} {
		var out strings.Builder
		err := run(t.Context(), strings.Fields(tc.args), &out)
		if fmt.Sprint(err) != tc.err || out.String() != tc.want {
			t.Errorf("%s: %v\n%swant %s\n%s", tc.args, err, out.String(), tc.err, tc.want)
		}
	}
}

func figures(dead, elsewhere, percent int) string {
	const tried = 4
	return fmt.Sprintf("of %d tried (of 5 that there are) %d killed, %d of them by other packages' tests alone; %d live (%d %% killed)\n", tried, dead, elsewhere, tried-dead, percent)
}

// What a package's own tests let live others' tests judge together: each has a fate of its own all
// the same, also one that no test comes by.
func TestWhatLivesIsJudgedTogether(t *testing.T) {
	module(t)
	must(t, os.MkdirAll("pair/more", 0o755))
	for name, text := range map[string]string{
		"pair/pair.go":           "package pair\n\nfunc Less(a, b int) bool { return a < b }\n\nfunc Same(a, b int) bool { return a == b }\n\nfunc Never(a bool) bool { return !a }\n",
		"pair/pair_test.go":      "package pair\n\nimport \"testing\"\n\nfunc TestNothing(*testing.T) { Less(1, 2) }\n",
		"pair/more/more_test.go": "package more\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/pair\"\n)\n\nfunc TestSame(t *testing.T) {\n\tif !pair.Same(1, 1) {\n\t\tt.Fatal()\n\t}\n}\n",
	} {
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	list, err := mutants("pair")
	must(t, err)
	b, err := judge{dir: t.TempDir(), packages: []string{"pair/more"}}.open([]draw{{"pair", list}}, len(list))
	must(t, err)
	got := map[string]fate{}
	must(t, b.fates(t.Context(), list, func(m mutant, f fate) { got[m.from+m.to] = f }))
	if want := map[string]fate{"<<=": lives, "<>=": lives, "==!=": killedElsewhere, "!": lives}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if own, also := len(b.own["pair"].met), len(b.also[0].met); own != 2 || also != 1 {
		t.Errorf("the package's own tests come by %d, the others by %d", own, also)
	}
}

// A room that many others hide is a failure too.
func TestEveryPackageIsHeldToTheLeast(t *testing.T) {
	module(t)
	must(t, os.MkdirAll("all", 0o755))
	must(t, os.WriteFile("all/all.go", []byte("package all\n\nfunc Both(a, b bool) bool { return !a && b }\n"), 0o600))
	must(t, os.WriteFile("all/all_test.go", []byte("package all\n\nimport \"testing\"\n\nfunc TestBoth(t *testing.T) {\n\tif !Both(false, true) || Both(true, true) || Both(false, false) {\n\t\tt.Fatal()\n\t}\n}\n"), 0o600))
	var out strings.Builder
	err := run(t.Context(), strings.Fields("-least 80 ./less ./all"), &out)
	if fmt.Sprint(err) != "fewer than 80 of 100 are killed in less" || !strings.HasSuffix(out.String(), "\nall: of 6 tried (of 7 that there are) 5 killed, 0 of them by other packages' tests alone; 1 live (83 % killed)\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A run that is stopped has told of what it has judged.
func TestMutantsAreToldOfAtOnce(t *testing.T) {
	module(t)
	list, err := mutants("less")
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	told := 0
	b, err := judge{dir: t.TempDir()}.open([]draw{{"less", list}}, 1)
	must(t, err)
	list = slices.Repeat(list[:1], 8*runtime.NumCPU())
	err = b.fates(ctx, list, func(m mutant, f fate) {
		if told++; m != list[0] || f != lives {
			t.Errorf("%s: %d", m, f)
		}
		stop()
	})
	if !errors.Is(err, context.Canceled) || told < 1 || told == len(list) {
		t.Errorf("%d told, %v", told, err)
	}
}

// A mutant that stands in the file is not drawn, wherever its line has moved; an entry that
// fits nothing is said, of the packages that are judged.
func TestMutantsThatMakeNoDifferenceAreNotDrawn(t *testing.T) {
	module(t)
	for _, tc := range []struct{ file, err, out string }{
		{"# nobody asks for equals\nless/less.go: func Less(a, b int) bool { return a <= b }\n\nother/x.go: a\n", "<nil>", "less: of 3 tried (of 4 that there are) 3 killed, 0 of them by other packages' tests alone; 0 live (100 % killed)\n"},
		{"less/less.go: func Less(a, b int) bool { return a == b }\n", "./less: no mutant any more: less/less.go: func Less(a, b int) bool { return a == b }", ""},
	} {
		must(t, os.WriteFile("same", []byte(tc.file), 0o600))
		must(t, os.WriteFile("less/less.go", []byte(strings.Replace(less, "// Less", "\n\n// Less", 1)), 0o600))
		var out strings.Builder
		if err := run(t.Context(), strings.Fields("-same same ./less"), &out); fmt.Sprint(err) != tc.err || !strings.HasPrefix(out.String(), tc.out) {
			t.Errorf("%v, want %s\n%swant %s", err, tc.err, out.String(), tc.out)
		}
	}
}

// Every mutant that is said to make no difference is one.
func TestWhatMakesNoDifferenceIsThere(t *testing.T) {
	t.Chdir("../..")
	known, err := readSame("testdata/mutants/same.txt")
	must(t, err)
	dirs := map[string]bool{}
	for entry := range known {
		dirs[filepath.Dir(strings.Split(entry, ":")[0])] = true
	}
	for dir := range dirs {
		list, err := mutants(dir)
		must(t, err)
		if _, err := known.without(dir, list); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
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
