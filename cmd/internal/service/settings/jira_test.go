package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// README's configuration is one.
func TestJiraOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../../../../README.md")
	must(t, err)
	_, block, _ := strings.Cut(string(text), "```yaml\njira:")
	block, _, _ = strings.Cut(block, "```")
	path := filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(path, []byte("jira:"+block), 0o600))
	c, err := ReadConfig(path)
	must(t, err)
	want := jiraConfig{URL: "https://example.atlassian.net", Deployment: "cloud", User: "bot@example.com", TokenFile: "/etc/unpend/jira-token", Project: "OPS", IssueType: "Task",
		Fields: map[string]any{"customfield_10042": map[string]any{"value": "GPU"}}, Cluster: "prod"}
	if diff := cmp.Diff(want, c.Jira); diff != "" {
		t.Error(diff)
	}
	if o := c.Jira.Options(); o.Reopen != 7*24*time.Hour {
		t.Errorf("reopen is %s", o.Reopen)
	}
	c.Jira.Reopen = &metav1.Duration{}
	if o := c.Jira.Options(); o.Reopen != 0 {
		t.Errorf("reopen is %s", o.Reopen)
	}
}
