package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKnowledgeConfig(t *testing.T) {
	read := func(text string) error {
		file := filepath.Join(t.TempDir(), "config.yaml")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ReadConfig(file)
		return err
	}
	for text, want := range map[string]string{
		"{folder: a, library: b, maxBytes: 1048576, slack: {tokenFile: t, appTokenFile: u, channels: [c], privateChannels: [d], every: 10m}, jira: {url: https://a.example, deployment: cloud, user: u, tokenFile: t, site: https://b.example, projects: [OPS], every: 1m, sweep: 1h}}": "",
		"{maxBytes: 5}":                                     "knowledge.maxBytes is 5",
		"{slack: {channels: [a]}}":                          "knowledge.slack.tokenFile is not given",
		"{slack: {tokenFile: t}}":                           "knowledge.slack.channels and knowledge.slack.privateChannels are empty",
		"{slack: {tokenFile: t, channels: [a], every: 1s}}": "knowledge.slack.every is 1s: it has to be 1m0s or more",
		"{slack: {token: t}}":                               "knowledge.slack.token: there is no such key",
		"{jira: {url: https://a.example, deployment: cloud, tokenFile: t, projects: [OPS]}}":                  "knowledge.jira.user is not given",
		"{jira: {url: https://a.example, deployment: cloud, user: u, projects: [OPS]}}":                       "knowledge.jira.tokenFile is not given",
		"{jira: {url: https://a.example, deployment: datacenter, tokenFile: t}}":                              "knowledge.jira.projects is empty",
		"{jira: {url: https://a.example, deployment: datacenter, tokenFile: t, projects: [ops]}}":             `knowledge.jira.projects has "ops"`,
		"{jira: {url: 'https://me:secret@a.example', deployment: datacenter, tokenFile: t, projects: [OPS]}}": "knowledge.jira.url has a user",
		"{jira: {url: https://a.example, deployment: server, tokenFile: t, projects: [OPS]}}":                 `knowledge.jira.deployment is "server"`,
	} {
		err := read("knowledge: " + text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := read("slack: {channel: C1, tokenFile: t, appTokenFile: u}\nknowledge: {slack: {tokenFile: t, appTokenFile: u, channels: [c]}}"); err == nil || !strings.Contains(err.Error(), "leave it out") {
		t.Errorf("one app heard twice: %v", err)
	}
}
