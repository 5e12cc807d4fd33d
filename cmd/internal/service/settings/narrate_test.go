package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What of the configuration cannot be meant is said with its key; README's can.
func TestNarrateConfig(t *testing.T) {
	read := func(text string) (Config, error) {
		path := filepath.Join(t.TempDir(), "unpend.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return ReadConfig(path)
	}
	text, err := os.ReadFile("../../../../README.md")
	must(t, err)
	_, block, found := strings.Cut(string(text), "```yaml\nnarrate:")
	block, _, _ = strings.Cut(block, "```")
	c, err := read("narrate:" + block)
	must(t, err)
	if diff := cmp.Diff(narrateConfig{URL: "https://api.openai.com/v1", Model: "gpt-5.4-mini", KeyFile: "/etc/unpend-narrate/key"}, c.Narrate); diff != "" || !found {
		t.Error(diff)
	}
	for yaml, want := range map[string]string{
		"narrate: {deadline: 3s}":                                               "narrate names no narrate.url",
		"narrate: {url: 'http://x/v1', model: m, deadline: 1ms}":                "narrate.deadline is 1ms",
		"narrate: {url: 'http://x/v1', model: m, perHour: 0}":                   "narrate.perHour is 0",
		"narrate: {url: 'http://x/v1', model: m, key: sk-1}":                    "narrate.key: there is no such key",
		"narrate: {url: 'http://x/v1', model: o3, tokenLimitField: max_tokens}": "which o3 does not take",
	} {
		if _, err := read(yaml); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", yaml, err)
		}
	}
	if shown := fmt.Sprint((Config{Narrate: narrateConfig{URL: "https://models.example.com/secret/v1"}}).Shown()); strings.Contains(shown, "secret") {
		t.Errorf("the log shows %s", shown)
	}
}
