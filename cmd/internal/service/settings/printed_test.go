package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/remediate/plan"
)

// The log holds the configuration in force and no password.
func TestShownConfigHoldsNoSecret(t *testing.T) {
	var c Config
	c.Bus.URL, c.RCA.Prometheus = "nats://unpend:hunter2@nats:4222", "https://x:hunter2@prometheus"
	c.Remediate.Identities = []plan.Identity{{User: "ada@example.com"}}
	text, err := json.Marshal(c.Shown())
	must(t, err)
	for _, secret := range []string{"hunter2", "ada@"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
	if !strings.Contains(string(text), `"url":"nats://unpend:xxxxx@nats:4222"`) || c.Remediate.Identities[0].User != "ada@example.com" {
		t.Errorf("shown %s, left %+v", text, c)
	}
}

// Of each key with a default, where its part is on, the log holds the default that the guide for
// operators tells: what is in force, and no zero in its place.
func TestShownConfigIsInForce(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "unpend")
	path := filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(path, []byte(`slack: {channel: C0, tokenFile: x}
jira: {url: https://j.example, deployment: datacenter, tokenFile: x, project: OPS, issueType: Task}
narrate: {url: https://m.example/v1, model: m}
knowledge: {slack: {tokenFile: t, channels: [a]}, jira: {url: https://j.example, deployment: datacenter, tokenFile: t, projects: [OPS]}}
pagerduty: {keyFile: x}
opsgenie: {keyFile: x}
`), 0o600))
	c, err := ReadConfig(path)
	must(t, err)
	text, err := json.Marshal(c.Shown())
	must(t, err)
	var shown map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	must(t, d.Decode(&shown))
	guide, err := os.ReadFile(operations)
	must(t, err)
	_, table, _ := strings.Cut(string(guide), "<!-- keys -->")
	table, _, _ = strings.Cut(table, "<!-- end of keys -->")
	compared := 0
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| .* \\| ([^|]+) \\|$").FindAllStringSubmatch(table, -1) {
		key, by := row[1], row[2]
		want := map[string]string{ // in words there
			"remediate.namespace": "unpend", "bus.replicas": "1", "web.metrics": "127.0.0.1:9090", "jira.priority": "", "jira.doneStatus": "", "jira.openStatus": "",
			"pagerduty.when.everything": "false", "opsgenie.when.everything": "false", "alertmanager.when.everything": "true", "webhook.when.everything": "true"}
		words, is := want[key]
		if !is {
			words, _, _ = strings.Cut(by, ":")
			if strings.Contains(by, "://") {
				words = by
			}
		}
		var at any = shown
		for part := range strings.SplitSeq(key, ".") {
			at = at.(map[string]any)[part]
		}
		if got := fmt.Sprint(at); canonical(got) != canonical(words) {
			t.Errorf("%s is shown as %s, and the guide says %s", key, got, by)
		}
		compared++
	}
	if compared < 30 {
		t.Errorf("%d defaults were found", compared)
	}
}

// canonical is a duration, or a number of bytes, as others write it too.
func canonical(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return d.String()
	}
	if q, err := resource.ParseQuantity(strings.TrimSuffix(strings.ReplaceAll(text, " ", ""), "B")); err == nil {
		return fmt.Sprint(q.AsApproximateFloat64())
	}
	return text
}
