package jira

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// dialect is what differs between the deployments.
type dialect struct {
	version string // of the REST API
	// search is where JQL is asked for, and how: Cloud has removed the one, Data Center never
	// had the other: https://developer.atlassian.com/changelog/#CHANGE-2046
	search string
	// write renders a text as a field takes it.
	write func(document) any
}

var dialects = map[string]dialect{
	Cloud:      {"3", "search/jql", func(d document) any { return d.adf() }},
	DataCenter: {"2", "search", func(d document) any { return d.wiki() }},
}

// found is a ticket as a search shows it.
type found struct {
	ID     string `json:"id"`
	Key    string `json:"key"`
	Fields struct {
		Status  status `json:"status"`
		Changed string `json:"statuscategorychangedate"`
		Ended   string `json:"resolutiondate"`
		Updated string `json:"updated"`
	} `json:"fields"`
}

type status struct {
	Name     string `json:"name"`
	Category struct {
		Key string `json:"key"` // new, indeterminate or done
	} `json:"statusCategory"`
}

func (s status) done() bool { return s.Category.Key == "done" }

// over is since when a ticket is done, as well as Jira says it.
func (f found) over() time.Time {
	for _, text := range []string{f.Fields.Changed, f.Fields.Ended, f.Fields.Updated} {
		if at, err := time.Parse("2006-01-02T15:04:05.000-0700", text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// labelled finds the tickets with a label, the newest first. Fields are named, for Cloud
// gives ids alone otherwise.
func (j *Jira) labelled(ctx context.Context, label string) ([]found, error) {
	ask := map[string]any{"jql": fmt.Sprintf("project = %s AND labels = %s ORDER BY created DESC", quoted(j.opts.Project), quoted(label)), "maxResults": page,
		"fields": []string{"status", "statuscategorychangedate", "resolutiondate", "updated"}}
	var got struct {
		Issues []found `json:"issues"`
	}
	err := j.call(ctx, "look for the ticket", "POST", j.speak.search, ask, &got)
	return got.Issues, err
}

// quoted is a text in JQL: https://support.atlassian.com/jira-software-cloud/docs/search-syntax-for-text-fields/
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
