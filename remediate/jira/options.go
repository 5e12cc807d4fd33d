package jira

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/remediate/notice"
)

// The deployments.
const (
	Cloud      = "cloud"
	DataCenter = "datacenter"
)

// DefaultReopen is after how long a wait is another ticket, by default.
const DefaultReopen = 7 * 24 * time.Hour

// placeholder is where a link has the incident's id.
const placeholder = "{incident}"

// Options of a Jira. What stands in a configuration is called there as here, with a small
// first letter.
type Options struct {
	// URL of the API: of the site, or for a scoped token or a service account's
	// https://api.atlassian.com/ex/jira/<cloud id>.
	URL string
	// Deployment is Cloud or DataCenter.
	Deployment string
	// User is the account's e-mail address, on Cloud alone.
	User string
	// Token is the account's API token, on Data Center a personal access token.
	Token string
	// Project's key, and the name of the type of ticket.
	Project, IssueType string
	// Priority's name; the project's default without it.
	Priority string
	// Components' names, and labels besides ours.
	Components, Labels []string
	// Fields by their ids (customfield_10042), as Jira takes them.
	Fields map[string]any
	// DoneStatus that a ticket gets when nobody waits any more; without it the first that the
	// workflow counts as done. OpenStatus that it gets when somebody waits again; without it
	// the first that is not.
	DoneStatus, OpenStatus string
	// Resolution that a closed ticket gets, where the workflow asks for one.
	Resolution string
	// Reopen is within what time a new wait of the same incident opens its ticket again;
	// later it is another ticket.
	Reopen time.Duration
	// Cluster is what people call the cluster; a part of labels, so letters, digits, ".",
	// "_" and "-".
	Cluster string
	// Link is where people see an incident, with {incident} for its id; no link without it.
	Link string
	// HTTP is how Jira is spoken to: it follows no redirect.
	HTTP *http.Client
	// Load and Save keep what was made where, by a key of letters, digits, "." and "-".
	// Load gives nil for a key that was never saved. What they forget is found again.
	Load func(ctx context.Context, key string) ([]byte, error)
	Save func(ctx context.Context, key string, value []byte) error
	// Clock that is waited by; the machine's without it.
	Clock notice.Clock
	// Logger of what is done without being asked for; nothing is logged without it.
	Logger *slog.Logger
}

// whole is what New wants.
func (o Options) whole() error {
	switch {
	case o.Token == "":
		return errors.New("jira: there is no token")
	case o.Load == nil || o.Save == nil:
		return errors.New("jira: there is nowhere to keep what was made")
	case o.HTTP == nil:
		return errors.New("jira: there is no way to it")
	case !clusterName.MatchString(o.Cluster):
		return fmt.Errorf("jira.cluster is %q: it is part of a label, so it has to be of at most 63 letters, digits, dots, underscores and hyphens", o.Cluster)
	}
	return o.Validate()
}

var (
	// https://confluence.atlassian.com/adminjiraserver/changing-the-project-key-format-938847081.html
	projectKey  = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,19}$`)
	clusterName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)
)

// own are fields that have keys of their own.
var own = []string{"project", "issuetype", "summary", "description", "labels", "components", "priority"}

// Validate says what of a configuration cannot be meant, each by its key.
func (o Options) Validate() error {
	var wrong []error
	say := func(bad bool, format string, of ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, of...))
		}
	}
	say(o.Deployment != Cloud && o.Deployment != DataCenter, "jira.deployment is %q: it has to be %s or %s", o.Deployment, Cloud, DataCenter)
	say(o.Deployment == Cloud && o.User == "", "jira.user is not given: on Cloud it has to be the e-mail address of the account whose API token it is")
	say(o.Deployment == DataCenter && o.User != "", "jira.user is %q: on Data Center the token says whose it is, leave it out", o.User)
	wrong = append(wrong, address("jira.url", o.URL, "the address of the site, https://example.atlassian.net"))
	say(!projectKey.MatchString(o.Project), "jira.project is %q: it has to be the key of a project, capitals as in OPS", o.Project)
	say(strings.TrimSpace(o.IssueType) == "", "jira.issueType is not given: it has to be the name of a type of the project, as Task")
	for _, l := range o.Labels {
		say(l == "" || len(l) > maxLabel || strings.ContainsFunc(l, func(r rune) bool { return r <= ' ' }), "jira.labels has %q: a label has no spaces and at most %d characters", l, maxLabel)
	}
	for id := range o.Fields {
		say(slices.Contains(own, id), "jira.fields has %s, which is not set there: it has a key of its own, or is told by unpend", id)
	}
	say(o.Reopen < 0, "jira.reopen is %s: it has to be 0 or more", o.Reopen)
	if o.Link != "" {
		wrong = append(wrong, address("jira.link", strings.ReplaceAll(o.Link, placeholder, "x"), "where people see an incident, https://unpend.example.com/incidents/"+placeholder))
		say(!strings.Contains(o.Link, placeholder), "jira.link has no %s, where the id of an incident stands", placeholder)
	}
	return errors.Join(wrong...)
}

// address says whether a text is an address that may be asked; it may hold a password, and is
// not shown.
func address(key, text, want string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%s is no address: it has to be %s", key, want)
	case u.User != nil:
		return fmt.Errorf("%s has a user or a password in it: the token stands in jira.tokenFile", key)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s has a ? or a #: it has to be %s", key, want)
	}
	return nil
}

// label tells an incident's tickets from all others.
func (o Options) label(incident string) string { return "unpend-" + o.Cluster + "-" + incident }
