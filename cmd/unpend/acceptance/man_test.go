package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commandsOf lists a command and all below it that its help names, but those that are cobra's.
func commandsOf(t *testing.T, path ...string) [][]string {
	t.Helper()
	out := [][]string{path}
	_, help, _ := call(t, append(slices.Clone(path), "--help")...)
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) +`).FindAllStringSubmatch(list, -1) {
		if m[1] != "help" && m[1] != "completion" {
			out = append(out, commandsOf(t, append(slices.Clone(path), m[1])...)...)
		}
	}
	return out
}

// examplesOf are the command lines under the examples of a command's help.
func examplesOf(t *testing.T, path []string) []string {
	t.Helper()
	_, help, _ := call(t, append(slices.Clone(path), "--help")...)
	_, text, _ := strings.Cut(help, "\nExamples:\n")
	text, _, _ = strings.Cut(text, "\n\n")
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// Every command has a man page with its examples, two at least, and the same binary writes
// the same pages.
func TestManPages(t *testing.T) {
	dir, again := filepath.Join(t.TempDir(), "new", "man1"), t.TempDir()
	for _, d := range []string{dir, again} {
		if code, out, errs := call(t, "man", d); code != 0 || out != "" || errs != "" {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
	}
	commands := commandsOf(t)
	if len(commands) < 15 {
		t.Fatalf("%d commands", len(commands))
	}
	for _, path := range commands {
		name := strings.Join(append([]string{"unpend"}, path...), "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		second, err := os.ReadFile(filepath.Join(again, name))
		must(t, err)
		if string(page) != string(second) {
			t.Errorf("%s differs when it is written again", name)
		}
		plain := strings.ReplaceAll(string(page), `\`, "")
		examples := examplesOf(t, path)
		if len(examples) < 2 {
			t.Errorf("%s has %d examples", name, len(examples))
		}
		for _, e := range examples {
			if !strings.Contains(plain, e) {
				t.Errorf("%s lacks the example %q", name, e)
			}
		}
	}
	if code, _, errs := call(t, "man", filepath.Join(dir, "unpend.1")); code != exitError || !strings.Contains(errs, "write man pages: ") {
		t.Errorf("into a file: exit %d, %s", code, errs)
	}
}

// Every example of the help is one that the program takes: those of dumps and of the program
// itself give an answer, and those of a cluster say that none is configured here.
func TestExamplesRun(t *testing.T) {
	t.Chdir("../../..") // whose paths they name
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	ran := 0
	for _, path := range commandsOf(t) {
		for _, e := range examplesOf(t, path) {
			words := wordsOf(e)
			if len(words) == 0 || slices.Contains([]string{"demo", "run", "completion", "mcp"}, words[0]) {
				continue // they are played elsewhere, and do not end by themselves
			}
			code, out, errs := call(t, words...)
			offline := slices.Contains(words, "-f") && !slices.Contains(words, "-") || words[0] == "version"
			switch ran++; {
			case offline && (code != 0 || out == ""):
				t.Errorf("%s: exit %d, %s", e, code, errs)
			case code == exitUsage || !offline && (code == 0 || errs == ""):
				t.Errorf("%s: exit %d, %s%s", e, code, out, errs)
			}
		}
	}
	if ran < 25 {
		t.Errorf("%d examples", ran)
	}
}

// wordsOf are the arguments of unpend in a line of a shell; none where it calls another.
func wordsOf(line string) []string {
	line, _, _ = strings.Cut(line, "   #")
	for part := range strings.SplitSeq(line, "|") {
		part = strings.TrimSpace(part)
		part, _, _ = strings.Cut(part, " > ")
		part, _, _ = strings.Cut(part, " < ")
		if rest, ok := strings.CutPrefix(part, "unpend "); ok {
			var out []string
			for _, m := range regexp.MustCompile(`'[^']*'|"(?:[^"\\]|\\.)*"|\S+`).FindAllString(rest, -1) {
				if strings.HasPrefix(m, `"$(`) {
					m = strings.Repeat("0", 64) // what the other program says: a hash
				}
				out = append(out, strings.Trim(m, `'"`))
			}
			return out
		}
	}
	return nil
}
