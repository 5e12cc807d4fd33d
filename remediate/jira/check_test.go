package jira_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/jira"
	"github.com/unpend/unpend/remediate/jira/fakejira"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/outbound"
)

// What the project has not, or wants and does not get, is told with where to mend it, before
// anything is written.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		site   func(*site)
		change func(*jira.Options)
		want   string
	}{
		"all is there":           {nil, func(o *jira.Options) { o.DoneStatus, o.OpenStatus, o.Priority = "done", "In Progress", "High" }, "<nil>"},
		"a field that is wanted": {func(s *site) { s.Require("customfield_10042", "Cost centre") }, nil, `OPS wants the field "Cost centre" for a new Task, and nobody configured it: set jira.fields.customfield_10042, or make it optional in Jira`},
		"and is configured": {func(s *site) { s.Require("customfield_10042", "Cost centre") }, func(o *jira.Options) {
			o.Fields = map[string]any{"customfield_10042": map[string]any{"value": "7"}}
		}, "<nil>"},
		"another type":   {nil, func(o *jira.Options) { o.IssueType = "Incident" }, `jira.issueType is "Incident": in OPS the account may make ["Epic" "Story" "Bug" "Task"]`},
		"a subtask":      {nil, func(o *jira.Options) { o.IssueType = "Sub-task" }, `jira.issueType is "Sub-task": in OPS the account may make ["Epic" "Story" "Bug" "Task"]`},
		"a priority":     {nil, func(o *jira.Options) { o.Priority = "Urgent" }, `jira.priority is "Urgent": OPS has ["High" "Medium"]`},
		"a component":    {nil, func(o *jira.Options) { o.Components = []string{"gpu", "net"} }, `jira.components is "net": OPS has ["gpu" "scheduler"]`},
		"a field":        {nil, func(o *jira.Options) { o.Fields = map[string]any{"customfield_1": 1} }, "jira.fields.customfield_1 is set, and the screen for a new Task in OPS has no such field: put it there, or leave it out of the configuration"},
		"a status":       {nil, func(o *jira.Options) { o.DoneStatus = "To Do" }, `jira.doneStatus is "To Do": of a Task in OPS these could be it: ["Done" "Won't Do"]`},
		"an open status": {nil, func(o *jira.Options) { o.OpenStatus = "Open" }, `jira.openStatus is "Open": of a Task in OPS these could be it: ["To Do" "In Progress"]`},
		"a project":      {nil, func(o *jira.Options) { o.Project = "DEV" }, "read which types of ticket jira.project has: Jira answers 404 Not Found: No project could be found with key 'DEV'.: jira.url, jira.deployment or jira.project is another one, or the account does not see the project"},
		"a token": {nil, func(o *jira.Options) { o.Token = "another" }, "ask who we are: Jira answers 401 Unauthorized: Client must be authenticated to access this resource.: the token in jira.tokenFile is not taken: it is wrong, revoked or expired " +
			"(one of Cloud lasts a year at most), or it has scopes, and jira.url is not https://api.atlassian.com/ex/jira/<cloud id>"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, d string) {
				clock := notifytest.NewClock()
				s := newSite(t, clock, d)
				if tc.site != nil {
					tc.site(s)
				}
				if tc.change != nil {
					s.change = tc.change
				}
				j := s.jira(t, clock, nil)
				if got := fmt.Sprint(j.Check(t.Context())); got != tc.want {
					t.Errorf("%s\nwant\n%s", got, tc.want)
				}
				if err := j.Notify(t.Context(), offer()); fmt.Sprint(err) != tc.want || errors.Is(err, notice.ErrRefused) || tc.want != "<nil>" && s.Writes() != 0 {
					t.Errorf("told, and says %v after %d writes", err, s.Writes())
				}
			})
		})
	}
}

// A field that the project wants since it was looked at is told by its name at the next try;
// once it is configured or wanted no more, the ticket is made.
func TestProjectChanges(t *testing.T) {
	clock := notifytest.NewClock()
	s := newSite(t, clock, jira.Cloud)
	j := s.jira(t, clock, nil)
	if err := j.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Server.Fail(fakejira.Missing("customfield_10042", "Cost centre is required."))
	if err := j.Notify(t.Context(), offer()); fmt.Sprint(err) != "make a ticket: Jira answers 400 Bad Request: customfield_10042: Cost centre is required." || errors.Is(err, notice.ErrRefused) {
		t.Error(err)
	}
	s.Require("customfield_10042", "Cost centre")
	if err := j.Notify(t.Context(), offer()); err == nil || !strings.Contains(err.Error(), "set jira.fields.customfield_10042") {
		t.Error(err)
	}
	s.Optional("customfield_10042")
	told(t, j, offer())
	s.only(t)
}

// A ticket that its workflow does not let us close is told, with what to set, and refused:
// others go on.
func TestWorkflow(t *testing.T) {
	for name, tc := range map[string]struct {
		site   func(*site)
		change func(*jira.Options)
		want   string
		status string
	}{
		"nowhere":         {func(s *site) { s.NoWay = true }, nil, `refused: ticket OPS-1: close it: from "To Do" the workflow leads the account to ["In Progress"], and not to any that is done: set jira.doneStatus, or let the workflow lead there`, "To Do"},
		"resolution":      {func(s *site) { s.AsksResolution = true }, nil, `refused: ticket OPS-1: close it: the transition "to Done" wants a resolution: set jira.resolution`, "To Do"},
		"its resolution":  {func(s *site) { s.AsksResolution = true }, func(o *jira.Options) { o.Resolution = "Fixed" }, "<nil>", "Done"},
		"the other way":   {func(s *site) { s.AsksResolution = true }, func(o *jira.Options) { o.DoneStatus = "Won't Do" }, "<nil>", "Won't Do"},
		"no screen is it": {nil, func(o *jira.Options) { o.Resolution = "Fixed" }, "<nil>", "Done"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := notifytest.NewClock()
			s := newSite(t, clock, jira.DataCenter)
			if tc.site != nil {
				tc.site(s)
			}
			if tc.change != nil {
				s.change = tc.change
			}
			n := s.New(t, clock, nil)
			told(t, n, offer())
			if err := n.Notify(t.Context(), resolved(offer(), at(8))); fmt.Sprint(err) != tc.want || errors.Is(err, notice.ErrRefused) != (err != nil) {
				t.Errorf("%v\nwant\n%s", err, tc.want)
			}
			if is := s.only(t); is.Status != tc.status || !strings.Contains(is.Shown(), "Nobody of it waits") {
				t.Errorf("%s:\n%s", is.Status, is.Shown())
			}
		})
	}
}

// What Jira answers that is none of its answers is told as what it is, without the token.
func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
			"ask who we are: Jira answers 302 Found: it leads elsewhere, where nobody follows: jira.url has to be the address of its API"},
		"a login page":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "what is not its JSON: a login page or a proxy may stand before jira.url"},
		"says the token": {func(w http.ResponseWriter, r *http.Request) { echo(w, r, http.StatusForbidden) }, "403 Forbidden: (token) Basic (token): the account may not do that in jira.project"},
		"too many, for an hour": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.Header().Set("RateLimit-Reason", "jira-burst-based")
			echo(w, r, http.StatusTooManyRequests)
		}, "tried 1 times: ask who we are: Jira answers 429 Too Many Requests: (token) Basic (token); jira-burst-based"},
		"without end": {func(w http.ResponseWriter, _ *http.Request) {
			for range 6 << 10 {
				if _, err := w.Write([]byte(strings.Repeat(" ", 1<<10))); err != nil {
					return
				}
			}
		}, "what is not its JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if r.URL.Path != "/rest/api/3/myself" {
					t.Errorf("%s was asked for", r.URL)
				}
				tc.answer(w, r)
			}))
			defer web.Close()
			clock := notifytest.NewClock()
			s := newSite(t, clock, jira.Cloud)
			s.change = func(o *jira.Options) { o.URL = web.URL }
			err := s.jira(t, clock, nil).Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), fakejira.Token) || asked == 0 {
				t.Errorf("%v", err)
			}
		})
	}
}

// echo says too much.
func echo(w http.ResponseWriter, r *http.Request, code int) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"errorMessages":["%s %s"],"errors":{}}`, fakejira.Token, r.Header.Get("Authorization"))
}

// What lies inside is not spoken to unless it is listed (S14), and that is said at once.
func promiseS14(t *testing.T) {
	client, err := outbound.New(outbound.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clock := notifytest.NewClock()
	inside := map[string]string{"https://169.254.169.254": "a cloud's metadata service", "https://127.0.0.1": "loopback", "https://10.0.0.1/jira": "private", "http://jira.example.com": "without TLS", "https://[fe80::1]": "link-local"}
	for address, why := range inside {
		s := newSite(t, clock, jira.DataCenter)
		s.change = func(o *jira.Options) { o.URL, o.HTTP = address, client.HTTP() }
		began := clock.Now()
		err := s.jira(t, clock, nil).Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "in outbound.allow") || !clock.Now().Equal(began) {
			t.Errorf("%s: %v", address, err)
		}
	}
	fmt.Printf("S14 %d/%d, addresses inside refused as a Jira's\n", len(inside), len(inside))
}

// What cannot be meant is told by its key, all at once, and shows no password.
func TestValidate(t *testing.T) {
	good := jira.Options{URL: "https://example.atlassian.net", Deployment: jira.Cloud, User: "a@example.com", Project: "OPS", IssueType: "Task"}
	for want, change := range map[string]func(*jira.Options){
		"<nil>": func(*jira.Options) {},
		`jira.deployment is "server": it has to be cloud or datacenter`:                                                       func(o *jira.Options) { o.Deployment = "server" },
		"jira.user is not given: on Cloud it has to be the e-mail address of the account whose API token it is":               func(o *jira.Options) { o.User = "" },
		`jira.user is "a@example.com": on Data Center the token says whose it is, leave it out`:                               func(o *jira.Options) { o.Deployment = jira.DataCenter },
		"jira.url is no address: it has to be the address of the site, https://example.atlassian.net":                         func(o *jira.Options) { o.URL = "jira" },
		"jira.url has a user or a password in it: the token stands in jira.tokenFile":                                         func(o *jira.Options) { o.URL = "https://a:secret@x" },
		"jira.url has a ? or a #: it has to be the address of the site, https://example.atlassian.net":                        func(o *jira.Options) { o.URL = "https://x/?token=secret" },
		`jira.project is "ops": it has to be the key of a project, capitals as in OPS`:                                        func(o *jira.Options) { o.Project = "ops" },
		"jira.issueType is not given: it has to be the name of a type of the project, as Task":                                func(o *jira.Options) { o.IssueType = " " },
		`jira.labels has "on call": a label has no spaces and at most 255 characters`:                                         func(o *jira.Options) { o.Labels = []string{"on call"} },
		"jira.fields has summary, which is not set there: it has a key of its own, or is told by unpend":                      func(o *jira.Options) { o.Fields = map[string]any{"summary": "x"} },
		"jira.reopen is -1s: it has to be 0 or more":                                                                          func(o *jira.Options) { o.Reopen = -time.Second },
		"jira.link has no {incident}, where the id of an incident stands":                                                     func(o *jira.Options) { o.Link = "https://x" },
		"jira.link is no address: it has to be where people see an incident, https://unpend.example.com/incidents/{incident}": func(o *jira.Options) { o.Link = "javascript:{incident}" },
	} {
		o := good
		change(&o)
		if got := fmt.Sprint(o.Validate()); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	keep := func(o jira.Options) jira.Options {
		o.Token, o.Cluster, o.HTTP = "x", "prod", direct()
		o.Load = func(context.Context, string) ([]byte, error) { return nil, nil }
		o.Save = func(context.Context, string, []byte) error { return nil }
		return o
	}
	for want, change := range map[string]func(*jira.Options){
		"jira: there is no token":                      func(o *jira.Options) { o.Token = "" },
		"jira: there is nowhere to keep what was made": func(o *jira.Options) { o.Save = nil },
		"jira: there is no way to it":                  func(o *jira.Options) { o.HTTP = nil },
		`jira.cluster is "my prod": it is part of a label, so it has to be of at most 63 letters, digits, dots, underscores and hyphens`: func(o *jira.Options) { o.Cluster = "my prod" },
		`jira.project is "": it has to be the key of a project, capitals as in OPS`:                                                      func(o *jira.Options) { o.Project = "" },
	} {
		o := keep(good)
		change(&o)
		if _, err := jira.New(o); fmt.Sprint(err) != want {
			t.Errorf("%v\nwant\n%s", err, want)
		}
	}
}
