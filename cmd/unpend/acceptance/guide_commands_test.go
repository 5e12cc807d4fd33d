package acceptance

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What people follow.
const readme, operations = "../../../README.md", "../../../deploy/README.md"

// shellOf are the lines of a guide's shell blocks, those that go on put together.
func shellOf(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	var out []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			if words := strings.Fields(line); len(words) > 0 {
				out = append(out, strings.Join(words, " "))
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no commands", file)
	}
	return out
}

// inPassing are the commands of kubectl and helm that a guide's sentences have, with arguments.
func inPassing(t *testing.T, file string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	plain := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "")
	for _, m := range regexp.MustCompile("`((?:kubectl|helm)\\s[^`]+)`").FindAllStringSubmatch(plain, -1) {
		if words := strings.Fields(m[1]); len(words) > 2 {
			out = append(out, strings.Join(words, " "))
		}
	}
	return out
}

// Every other command of the guides names a command and flags that there are.
func TestCommandsOfTheGuidesAreKnown(t *testing.T) {
	known := 0
	for _, file := range []string{readme, operations} {
		for _, cmd := range shellOf(t, file) {
			_, args, is := strings.Cut(" "+cmd, "unpend ")
			if words := strings.Fields(cmd); !is || !strings.HasSuffix(words[0], "unpend") && !strings.HasPrefix(cmd, "kubectl unpend ") {
				continue
			}
			known++
			if code, _, errs := call(t, append(strings.Fields(strings.ReplaceAll(args, `"`, "")), "--help")...); code != 0 {
				t.Errorf("%s: %s: %d %s", file, cmd, code, errs)
			}
		}
	}
	if known < 10 {
		t.Errorf("%d commands were found", known)
	}
}
