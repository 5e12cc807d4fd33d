package settings

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/jira"
)

// jiraConfig is the project in Jira where incidents are tickets. What each key means stands
// in jira.Options.
type jiraConfig struct {
	// URL of the site or server, https://example.atlassian.net; without it there are no tickets.
	URL string `json:"url"`
	// Deployment is cloud or datacenter.
	Deployment string `json:"deployment"`
	// TokenFile holds the API token, on Data Center a personal access token.
	TokenFile string `json:"tokenFile"`
	// User is the account's e-mail address, on Cloud alone.
	User string `json:"user"`
	// Project is its key, OPS.
	Project string `json:"project"`
	// IssueType of the tickets, by its name.
	IssueType string `json:"issueType"`
	// Priority of the tickets, by its name (the project's).
	Priority string `json:"priority"`
	// Components of the tickets, by their names.
	Components []string `json:"components"`
	// Labels that tickets carry beside unpend's own.
	Labels []string `json:"labels"`
	// Fields that the project requires, customfield_10042: as Jira takes it.
	Fields map[string]any `json:"fields"`
	// DoneStatus that a ticket gets when nobody waits any more (the first that is done).
	DoneStatus string `json:"doneStatus"`
	// OpenStatus that it gets when somebody waits again (the first that is not done).
	OpenStatus string `json:"openStatus"`
	// Resolution, where closing asks for one.
	Resolution string `json:"resolution"`
	// Reopen is within what time a new wait opens the ticket of the last again (168h).
	Reopen *metav1.Duration `json:"reopen"`
	// Link is where people see an incident, https://…/{incident}.
	Link string `json:"link"`
	// Cluster is what people call this one; its uid's beginning without it.
	Cluster string `json:"cluster"`
}

func (c jiraConfig) given() bool { return !reflect.DeepEqual(c, jiraConfig{}) }

// check says what of it cannot be meant.
func (c jiraConfig) check() error {
	if !c.given() {
		return nil
	}
	var no error
	if c.TokenFile == "" {
		no = fmt.Errorf("jira.tokenFile is not given: it has to be a file that holds the account's token")
	}
	return errors.Join(no, c.Options().Validate())
}

// Options are those of the notifier, without what is read from files.
func (c jiraConfig) Options() jira.Options {
	o := jira.Options{URL: c.URL, Deployment: c.Deployment, User: c.User, Project: c.Project, IssueType: c.IssueType, Priority: c.Priority, Components: c.Components, Labels: c.Labels, Fields: c.Fields,
		DoneStatus: c.DoneStatus, OpenStatus: c.OpenStatus, Resolution: c.Resolution, Reopen: jira.DefaultReopen, Link: c.Link}
	if c.Reopen != nil {
		o.Reopen = c.Reopen.Duration
	}
	return o
}
