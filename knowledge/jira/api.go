package jira

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/unpend/unpend/knowledge"
)

// The deployments.
const (
	Cloud      = "cloud"
	DataCenter = "datacenter"
)

// DefaultSweep is how often a project is compared with what is there, by default.
const DefaultSweep = 24 * time.Hour

// APIOptions of an API.
type APIOptions struct {
	// URL of the site, or for a token with scopes https://api.atlassian.com/ex/jira/<cloud id>;
	// required.
	URL string
	// Deployment is Cloud or DataCenter; required.
	Deployment string
	// User is the e-mail address of the account whose token it is, on Cloud.
	User string
	// Token of the API, on Data Center a personal access token; required.
	Token string
	// Site is the address that people browse; empty: that of each ticket's own address.
	Site string
	// Projects are the keys of those to read; required.
	Projects []string
	// Only says that tickets of other projects are taken out.
	Only bool
	// Sweep is how often a project is compared with what is there: search does not tell what
	// was deleted, or moved away (24 h).
	Sweep time.Duration
	// HTTP is what Jira is asked by; it follows no redirect. Required.
	HTTP *http.Client
	// Forbidden is the error of HTTP for what may not be spoken to; nil: it has none.
	Forbidden error
	// Clock that is waited by; the machine's without it.
	Clock knowledge.Clock
	// Watch is told how many tickets were read, and how much of all, from 0 to 1; 0: nobody
	// knows. nil: nobody is told.
	Watch func(tickets int, share float64)
}

var projectKey = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// Validate says what of the options cannot be meant.
func (o APIOptions) Validate() error {
	switch {
	case o.Deployment != Cloud && o.Deployment != DataCenter:
		return fmt.Errorf("deployment is %q: it has to be %s or %s", o.Deployment, Cloud, DataCenter)
	case o.Deployment == Cloud && o.User == "":
		return errors.New("user is not given: on Cloud it has to be the e-mail address of the account whose API token it is")
	case o.Deployment == DataCenter && o.User != "":
		return fmt.Errorf("user is %q: on Data Center the token says whose it is, leave it out", o.User)
	case len(o.Projects) == 0:
		return errors.New("projects is empty: it has to name those to read by their keys, as OPS")
	}
	for _, p := range o.Projects {
		if !projectKey.MatchString(p) {
			return fmt.Errorf("projects has %q: it has to be the key of a project, capitals as in OPS", p)
		}
	}
	return address(o.URL)
}

// API is a Jira whose projects are asked for.
type API struct {
	opts  APIOptions
	speak dialect
}

// dialect is what differs between the deployments.
type dialect struct {
	version string // of the REST API
	// search is where JQL is asked for: Cloud has removed the one, Data Center never had the
	// other: https://developer.atlassian.com/changelog/#CHANGE-2046
	search string
	// tokens says that a page names the next one; else pages are counted by tickets.
	tokens bool
}

var dialects = map[string]dialect{Cloud: {"3", "search/jql", true}, DataCenter: {"2", "search", false}}

// NewAPI makes one; it says nothing to Jira yet.
func NewAPI(o APIOptions) (*API, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("jira: %w", err)
	}
	if o.Token == "" || o.HTTP == nil {
		return nil, errors.New("jira: there is no token, or nothing to ask by")
	}
	if o.Sweep == 0 {
		o.Sweep = DefaultSweep
	}
	if o.Clock.Now == nil {
		o.Clock = knowledge.System()
	}
	if o.Watch == nil {
		o.Watch = func(int, float64) {}
	}
	return &API{opts: o, speak: dialects[o.Deployment]}, nil
}

// Read implements knowledge.Source. Each page is kept with a mark of how far it goes: who is
// killed goes on there. Afterwards what was updated since is read, and now and then all that
// is there is compared.
func (a *API) Read(ctx context.Context, to *knowledge.Intake) ([]knowledge.Whole, error) {
	if a.opts.Only { // first: the rest may take hours
		if err := to.Only(ctx, "jira", a.opts.Projects); err != nil {
			return nil, err
		}
	}
	r := &reader{API: a, to: to}
	for i, project := range a.opts.Projects {
		r.watch = func(share float64) { a.opts.Watch(r.read, (float64(i)+share)/float64(len(a.opts.Projects))) }
		if err := r.project(ctx, project); err != nil {
			return nil, fmt.Errorf("read Jira project %s: %w", project, err)
		}
	}
	return nil, nil
}

// result is a page of a search.
type result struct {
	Issues []json.RawMessage `json:"issues"`
	Token  string            `json:"nextPageToken"` // Cloud's
	Last   bool              `json:"isLast"`        // Cloud's
	Start  int               `json:"startAt"`       // Data Center's
	Total  int               `json:"total"`         // Data Center's
}

// page asks for the tickets that a query finds, from a place on; next is where to go on, empty
// after the last.
func (a *API) page(ctx context.Context, doing, jql, at string, most int, fields ...string) (got result, next string, err error) {
	ask := map[string]any{"jql": jql, "maxResults": most, "fields": fields}
	start := 0
	switch {
	case !a.speak.tokens:
		if at != "" {
			if _, err := fmt.Sscanf(at, "%d", &start); err != nil {
				return got, "", fmt.Errorf("%s: a place that is no number: %q", doing, at)
			}
		}
		ask["startAt"] = start
	case at != "":
		ask["nextPageToken"] = at
	}
	if err = a.call(ctx, doing, http.MethodPost, a.speak.search, ask, &got); err != nil {
		return got, "", err
	}
	if a.speak.tokens {
		if got.Token != "" && !got.Last {
			next = got.Token
		}
		return got, next, nil
	}
	if end := start + len(got.Issues); len(got.Issues) > 0 && end < got.Total {
		next = fmt.Sprint(end)
	}
	return got, next, nil
}

// count is how many tickets a query finds, as well as Jira knows; 0: nobody does.
func (a *API) count(ctx context.Context, jql string) int {
	if !a.speak.tokens {
		return 0 // each page tells
	}
	var got struct {
		Count int `json:"count"`
	}
	if a.once(ctx, "count tickets", http.MethodPost, "search/approximate-count", map[string]any{"jql": jql}, &got) != nil {
		return 0 // it is for a bar alone
	}
	return got.Count
}
