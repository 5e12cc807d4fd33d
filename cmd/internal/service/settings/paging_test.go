package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A route to a place that there is not, and a page that nobody can mean, are said when the
// service starts.
func TestPagesConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"routes: [{to: [pager]}]":              `routes[0].to: there is no place "pager"`,
		"routes: [{to: [jira]}]":               `routes[0].to: jira is not configured: nobody would be told there`,
		"routes: [{causes: [MIGFul], to: []}]": `routes[0].causes: there is no cause "MIGFul"`,
		"routes: [{at: {webhook: x}}]":         `routes[0].at.webhook: it has to be one of slack, jira, pagerduty, opsgenie`,
		"routes: [{to: [], at: {slack: C1}}]":  `routes[0].at.slack: the route does not lead there: list slack in its to`,
		"routes: [{minPriority: high}]":        `routes[0].minPriority is "high": it has to be a whole number`,
		"slack: {channel: C0123456789, tokenFile: x}\nroutes: [{to: [slack], at: {slack: ''}}]":                                                             `routes[0].at.slack: it names nothing`,
		"jira: {url: 'https://j.example', deployment: datacenter, tokenFile: x, project: OPS, issueType: Task}\nroutes: [{to: [jira], at: {jira: team a}}]": `routes[0].at.jira: jira.project is "team a": it has to be the key of a project, capitals as in OPS`,
		"pagerduty: {keyFile: x, when: {minPriority: 1000}}":                                                                                                `pagerduty.when.minPriority is 1000, and nobody is paged because somebody waits: set pagerduty.when.waiting too, or everything`,
		"opsgenie: {keyFile: x, when: {waiting: -5m}}":                                                                                                      `opsgenie.when.waiting is -5m0s: it has to be for how long somebody waits, or 0`,
		"alertmanager: {urls: ['https://a.example', '']}":                                                                                                   `alertmanager.urls[1] is empty: it has to be the address of an Alertmanager`,
		"routes: [{namespaces: ['[a'], to: [slack]}]":                                                                                                       `routes[0].namespaces: "[a" is no pattern`,
		"routes: [{namespace: [a], to: [slack]}]":                                                                                                           `routes[0].namespace: there is no such key`,
		"pagerduty: {key: abc}":                            `pagerduty.key: there is no such key`,
		"pagerduty: {when: {waiting: 30m, parked: maybe}}": `pagerduty.when.parked is "maybe": it has to be true or false`,
	} {
		path := filepath.Join(t.TempDir(), "unpend.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := ReadConfig(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	c := Config{Webhook: webhookConfig{URL: "https://hooks.example/hunter2"}}
	if got := c.Shown().Webhook.URL; got != "https://hooks.example" {
		t.Error(got)
	}
}
