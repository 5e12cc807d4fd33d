package library

import (
	"time"

	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/jira"
	"github.com/unpend/unpend/remediate/outbound"
)

// jiraAnswers is how long one answer may take, and jiraAnswer how large it may be: a page of
// tickets with all their texts.
const jiraAnswers, jiraAnswer = time.Minute, 64 << 20

func (i *ingest) jiraAPI() (knowledge.Source, error) {
	c := i.Config.Jira
	token, err := secrets.Read("knowledge.jira.tokenFile", c.TokenFile)
	if err != nil {
		return nil, err
	}
	client, err := outbound.New(outbound.Options{Allow: i.Allow, Secrets: []string{token}, Timeout: jiraAnswers, MaxAnswer: jiraAnswer})
	if err != nil {
		return nil, err
	}
	if _, err := client.Parse("knowledge.jira.url", c.URL); err != nil {
		return nil, err
	}
	o := c.options()
	o.Token, o.HTTP, o.Forbidden = token, client.HTTP(), outbound.ErrForbidden
	return jira.NewAPI(o)
}
