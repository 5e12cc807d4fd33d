package acceptance

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// README shows what the program prints, and names only targets that exist.
func TestReadmeIsTrue(t *testing.T) {
	t.Chdir("../../..") // whose paths the README shows
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	for _, command := range []string{"why", "capacity nvidia.com/mig-2g.10gb=1"} {
		_, out, _ := call(t, append(strings.Fields(command), "-f", "testdata/scenarios/all-1g")...)
		if shown := "$ unpend " + command + " -f testdata/scenarios/all-1g\n" + out + "```"; !strings.Contains(readme, shown) {
			t.Errorf("README does not show what %s prints:\n%s", command, out)
		}
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^make ([a-z-]+)`).FindAllStringSubmatch(readme, -1) {
		if !strings.Contains(string(makefile), "\n"+m[1]+":") {
			t.Errorf("README names make %s, which does not exist", m[1])
		}
	}
	_, help, _ := call(t, "--help")
	commands := regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(help, -1)
	if len(commands) < 10 {
		t.Errorf("%d commands in:\n%s", len(commands), help)
	}
	for _, m := range commands {
		name := m[1]
		if slices.Contains([]string{"help", "completion"}, name) {
			continue // they are cobra's
		}
		if !strings.Contains(readme, "`unpend "+name) {
			t.Errorf("README does not name unpend %s", name)
		}
		_, text, _ := call(t, name, "--help")
		_, examples, _ := strings.Cut(text, "\nExamples:\n")
		if examples, _, _ = strings.Cut(examples, "\n\n"); strings.Count(examples, "unpend ") < 2 {
			t.Errorf("%s has fewer than two examples:\n%s", name, text)
		}
	}
	if lines := strings.Count(string(makefile), "\n"); lines > 50 {
		t.Errorf("the Makefile has %d lines", lines)
	}
	for room := range house {
		if !strings.Contains(readme, "| `"+room+"` |") {
			t.Errorf("README does not show room %s", room)
		}
	}
}
