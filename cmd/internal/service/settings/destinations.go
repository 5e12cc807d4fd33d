package settings

import (
	"crypto/sha256"
	"fmt"
	"path"
	"regexp"
)

// destination is one of a place's channels, projects or services. Each is told by itself, so
// that one that is away holds up no other of the same place.
type destination struct {
	Name   string // among all; a word of a NATS subject
	At     string // as a route names it; empty: what the configuration of the place names
	Config Config
}

// Destinations are where a place has people told: what its own configuration names, and what
// routes name instead.
func (p place) Destinations(c Config) []destination {
	if !p.wanted(c) {
		return nil
	}
	out := []destination{{Name: p.Name, Config: c}}
	if p.each != nil {
		out = p.each(c)
	}
	seen := map[string]bool{}
	for _, r := range c.Routes {
		at := r.At[p.Name]
		if at == "" || seen[at] || p.at == nil {
			continue
		}
		seen[at] = true
		other := c
		p.at(&other, at)
		out = append(out, destination{named(p.Name, at), at, other})
	}
	return out
}

var word = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// named is what a destination is called: as people write it, where that can be a word of a
// subject, and else by its last part and its hash.
func named(place, at string) string {
	if word.MatchString(at) {
		return place + "-" + at
	}
	sum := sha256.Sum256([]byte(at))
	return fmt.Sprintf("%s-%.40s-%x", place, regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(path.Base(at), "_"), sum[:4])
}

// OnMCP is what agents are called among the places that ask for what the team has said.
const OnMCP = "mcp"

// QuotedIn are the places that may be told of what the team has said.
func QuotedIn() []string {
	all := []string{OnPage, OnMCP}
	for _, p := range Places {
		all = append(all, p.Name)
	}
	return all
}

// Overheard is whether events are heard where people click.
func (c Config) Overheard() bool {
	return c.Knowledge.Slack.Given() && c.Knowledge.Slack.AppTokenFile == "" && c.Slack.Heard()
}

// OnPage is what the page is called among the places. No route leaves anything out there:
// nobody is told by it who does not look.
const OnPage = "web"

// place is where people can be told.
type place struct {
	Name   string
	wanted func(Config) bool
	// at has a configuration name another channel, project or service there; nil: it has but
	// the one.
	at func(*Config, string)
	// each are configurations of those who are all told the same; nil: there is one.
	each func(Config) []destination
	// File is what the place is told with; nil: nothing.
	File func(Config) string
	// Role is whose process tells it; empty: notify.
	Role string
}

// Places are where people can be told, a line each.
var Places = []place{
	{Name: "slack", wanted: func(c Config) bool { return c.Slack.Channel != "" }, at: func(c *Config, channel string) { c.Slack.Channel = channel }, File: func(c Config) string { return c.Slack.TokenFile }},
	{Name: "jira", wanted: func(c Config) bool { return c.Jira.given() }, at: func(c *Config, project string) { c.Jira.Project = project }, File: func(c Config) string { return c.Jira.TokenFile }},
	{Name: "pagerduty", wanted: func(c Config) bool { return c.PagerDuty.KeyFile != "" }, at: func(c *Config, file string) { c.PagerDuty.KeyFile = file }, File: func(c Config) string { return c.PagerDuty.KeyFile }},
	{Name: "alertmanager", wanted: func(c Config) bool { return len(c.Alertmanager.all()) > 0 }, each: alertmanagers, File: func(c Config) string { return c.Alertmanager.TokenFile }},
	{Name: "opsgenie", wanted: func(c Config) bool { return c.Opsgenie.KeyFile != "" }, at: func(c *Config, file string) { c.Opsgenie.KeyFile = file }, File: func(c Config) string { return c.Opsgenie.KeyFile }},
	{Name: "webhook", wanted: func(c Config) bool { return c.Webhook.URL != "" }, File: func(c Config) string { return c.Webhook.SecretFile }},
	// It reads pods and writes Events, with rights that who diagnoses has, and speaks to nobody outside.
	{Name: "kubectl", wanted: func(c Config) bool { return c.Kubectl.Events }, Role: "diagnose"},
}
