package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// README's configuration is one, and the app that it tells to make has the rights that are
// used, and no other.
func TestSlackOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../../../../README.md")
	must(t, err)
	_, block, _ := strings.Cut(string(text), "```yaml\nslack:")
	block, _, _ = strings.Cut(block, "```")
	path := filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(path, []byte("slack:"+block), 0o600))
	c, err := ReadConfig(path)
	must(t, err)
	if want := (slackConfig{TokenFile: "/etc/unpend/slack-token", Channel: "C0123456789", Cluster: "prod"}); c.Slack != want {
		t.Errorf("%+v", c.Slack)
	}
	manifest, err := os.ReadFile("../../../../deploy/slack/manifest.yaml")
	must(t, err)
	var app struct {
		OAuth struct {
			Scopes map[string][]string `json:"scopes"`
		} `json:"oauth_config"`
		Features struct {
			Commands []struct {
				Command string `json:"command"`
			} `json:"slash_commands"`
		} `json:"features"`
		Settings map[string]any `json:"settings"`
	}
	must(t, yaml.Unmarshal(manifest, &app))
	const want = "map[bot:[chat:write channels:history groups:history commands app_mentions:read users:read]] [{/unpend}] " +
		"map[event_subscriptions:map[bot_events:[app_mention]] interactivity:map[is_enabled:true] org_deploy_enabled:false socket_mode_enabled:true token_rotation_enabled:false]"
	if got := fmt.Sprint(app.OAuth.Scopes, app.Features.Commands, app.Settings); got != want {
		t.Error(got)
	}
}
