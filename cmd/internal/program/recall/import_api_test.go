package recall

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/knowledge/jira/jiratest"
	"github.com/unpend/unpend/knowledge/slack/slacktest"
)

// Slack and Jira are asked into one library, which says of each what it has; a token stands in
// a file, and nowhere else.
func TestImportAsks(t *testing.T) {
	s := slacktest.New(slacktest.Channel{ID: "C1", Name: "gpu-help"}, slacktest.Channel{ID: "C2", Name: "lunch"})
	defer s.Close()
	s.Say("C1", slacktest.Message{"ts": "1790000000.000100", "user": "U1", "text": "Xid 79 on node-7"}, slacktest.Message{"ts": "1790000001.000100", "subtype": "channel_join", "user": "U1"})
	s.Say("C2", slacktest.Message{"ts": "1790000000.000100", "user": "U1", "text": "soup"})
	j := jiratest.New(time.Now, true)
	defer j.Close()
	j.Put(jiratest.Issue{Key: "GPU-1", Summary: "Xid 13", Created: time.Now(), Updated: time.Now()})
	dir := t.TempDir()
	file := func(name, text string) string {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return at
	}
	library := filepath.Join(dir, "library")
	run := func(args ...string) (code int, out, errs string) {
		t.Helper()
		var o, e bytes.Buffer
		std := console.Stdio{In: strings.NewReader(""), Out: &o, Err: &e}
		root := &cobra.Command{Use: "unpend", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(Command(nil, std), SearchCommand(std))
		root.SetArgs(append(slices.Clone(args), "--library", library))
		code, says := console.CodeOf(root.ExecuteContext(t.Context()))
		if says != nil {
			console.Complain(std.Err, says)
		}
		if strings.Contains(o.String()+e.String(), "secretsecret") {
			t.Errorf("it tells the token: %s%s", &o, &e)
		}
		return code, o.String(), e.String()
	}
	args := []string{"knowledge", "import", "--slack", "--slack-token-file", file("slack", slacktest.Token), "--slack-api", s.URL(), "--channel", "gpu-help",
		"--jira-url", j.URL(), "--jira-user", jiratest.User, "--jira-token-file", file("jira", jiratest.Token), "--jira-project", "GPU"}
	if code, _, errs := run(args...); code == 0 || !strings.Contains(errs, "--jira-url") {
		t.Errorf("an address that is not public: %d, %s", code, errs)
	}
	args = append(args, "--outbound-allow", "127.0.0.1")
	where := strings.TrimPrefix(j.URL(), "http://")
	want := "Slack: 1 new, 0 changed, 0 as before, 0 removed\n  left out: 1 × a notice of a join, a topic, a pin or a deleted message\n" + where + ": 1 new, 0 changed, 0 as before, 0 removed\n"
	if code, out, errs := run(args...); code != 0 || out != want || errs != "" {
		t.Fatalf("%d: %s%s, want %s", code, out, errs, want)
	}
	if code, out, _ := run("knowledge", "status"); code != 0 || !strings.Contains(out, "2 documents") || !strings.Contains(out, "#gpu-help") || !strings.Contains(out, "The GPU") || !strings.Contains(out, "left out: 1 × a notice") {
		t.Errorf("%d: %s", code, out)
	}
	if code, out, _ := run("search", "Xid 79"); code != 0 || !strings.Contains(out, "https://acme.slack.com/archives/C1/p1790000000000100") {
		t.Errorf("%d: %s", code, out)
	}
	for want, args := range map[string][]string{
		"--slack and --slack-token-file go together": {"--slack"},
		"--jira-url needs --jira-token-file":         {"--jira-url", "https://acme.atlassian.net"},
		"are of a --jira-url":                        {"--folder", dir, "--jira-project", "GPU"},
		"one after the other":                        {"--slack", "--slack-token-file", "x", "--slack-export", "y"},
		"read a token: open nowhere: no such file":   {"--slack", "--slack-token-file", "nowhere"},
	} {
		if code, _, errs := run(append([]string{"knowledge", "import"}, args...)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: %d, %s, want %s", args, code, errs, want)
		}
	}
}
