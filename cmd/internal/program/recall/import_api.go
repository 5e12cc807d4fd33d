package recall

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/jira"
	"github.com/unpend/unpend/knowledge/slack"
	"github.com/unpend/unpend/remediate/outbound"
)

const (
	// jiraAnswers is how long one answer may take, and jiraAnswer how large it may be: a page of
	// tickets with all their texts.
	jiraAnswers, jiraAnswer = time.Minute, 64 << 20
)

// askSlack is what Slack's API has.
func (o *importOptions) askSlack(std console.Stdio) (job, error) {
	token, err := tokenIn(o.slackToken)
	if err != nil {
		return job{}, err
	}
	watch := func(int, float64) {}
	a, err := slack.NewAPI(slack.APIOptions{Token: token, Channels: o.channels, Private: o.private, AllPublic: len(o.channels) == 0, URL: o.slackURL,
		Say:   func(text string) { fmt.Fprintf(std.Err, "unpend: %s\n", text) },
		Watch: func(threads int, share float64) { watch(threads, share) }})
	return job{source: a, name: "slack", from: "Slack", unit: "threads", close: func() error { return nil }, count: func(w func(int, float64)) { watch = w }}, err
}

// askJira is what Jira's API has.
func (o *importOptions) askJira(console.Stdio) (job, error) {
	token, err := tokenIn(o.jiraToken)
	if err != nil {
		return job{}, err
	}
	client, err := outbound.New(outbound.Options{Allow: o.allow, Secrets: []string{token}, Timeout: jiraAnswers, MaxAnswer: jiraAnswer})
	if err != nil {
		return job{}, errors.New(strings.ReplaceAll(err.Error(), "outbound.allow", "--outbound-allow"))
	}
	at, err := client.Parse("--jira-url", o.jiraURL)
	if err != nil {
		return job{}, err
	}
	deployment := jira.DataCenter
	if o.jiraUser != "" {
		deployment = jira.Cloud
	}
	watch := func(int, float64) {}
	a, err := jira.NewAPI(jira.APIOptions{URL: o.jiraURL, Deployment: deployment, User: o.jiraUser, Token: token, Site: o.jiraSite, Projects: o.jiraProjects, HTTP: client.HTTP(), Forbidden: outbound.ErrForbidden,
		Watch: func(tickets int, share float64) { watch(tickets, share) }})
	return job{source: a, name: "jira", from: host(at), unit: "tickets", close: func() error { return nil }, count: func(w func(int, float64)) { watch = w }}, err
}

// askOutcomes is what became of the plans of a cluster, read before a library is made for it.
func (o *importOptions) askOutcomes(ctx context.Context) (job, error) {
	all, err := o.plans(ctx)
	return job{source: knowledge.Outcomes(func(context.Context) ([]knowledge.Outcome, error) { return all, nil }),
		name: "outcome", from: "the cluster's plans", close: func() error { return nil }}, err
}

func host(at *url.URL) string { return terminal.Clean(at.Host) }

// tokenIn reads a token from its file.
func tokenIn(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read a token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", fmt.Errorf("read a token: %s is empty", file)
	}
	return token, nil
}
