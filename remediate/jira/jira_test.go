package jira_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/unpend/unpend/remediate/jira"
	"github.com/unpend/unpend/remediate/jira/fakejira"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
)

// site is Jira, and what processes keep of it.
type site struct {
	*fakejira.Server
	deployment string
	change     func(*jira.Options) // of what New makes

	mu   sync.Mutex
	kept map[string][]byte
}

func newSite(t *testing.T, c *notifytest.Clock, deployment string) *site {
	t.Helper()
	s := &site{Server: fakejira.New(c.Now, deployment == jira.Cloud), deployment: deployment, kept: map[string][]byte{}, change: func(*jira.Options) {}}
	s.Watch = documented(t, deployment)
	t.Cleanup(func() {
		s.Close()
		for _, c := range s.Complaints() {
			t.Errorf("Jira would say: %s", c)
		}
	})
	return s
}

// documented holds each request to what Atlassian documents.
func documented(t *testing.T, deployment string) func(*http.Request) error {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("testdata/" + deployment + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return func(r *http.Request) error {
		route, params, err := router.FindRoute(r)
		if err != nil {
			return err
		}
		for name := range r.URL.Query() {
			if route.Operation.Parameters.GetByInAndName("query", name) == nil {
				return fmt.Errorf("nobody documents the parameter %s", name)
			}
		}
		return openapi3filter.ValidateRequest(context.WithoutCancel(r.Context()), &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route})
	}
}

// New is a process that starts.
func (s *site) New(t *testing.T, c *notifytest.Clock, log *slog.Logger) notice.Notifier {
	t.Helper()
	return s.jira(t, c, log)
}

func (s *site) jira(t *testing.T, c *notifytest.Clock, log *slog.Logger) *jira.Jira {
	t.Helper()
	o := s.options()
	o.Clock, o.Logger = notice.Clock{Now: c.Now, Sleep: c.Sleep}, log
	s.change(&o)
	j, err := jira.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// options are what a configuration gives.
func (s *site) options() jira.Options {
	o := jira.Options{URL: s.URL(), Deployment: s.deployment, Token: fakejira.Token, Project: fakejira.Project, IssueType: fakejira.Type, Cluster: "prod", Reopen: jira.DefaultReopen, HTTP: direct(),
		Load: func(_ context.Context, key string) ([]byte, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.kept[key], nil
		},
		Save: func(_ context.Context, key string, value []byte) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.kept[key] = value
			return nil
		}}
	if s.deployment == jira.Cloud {
		o.User = fakejira.User
	}
	return o
}

// direct follows no redirect.
func direct() *http.Client {
	return &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// lose forgets what was kept, or a part of it.
func (s *site) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.kept)
}

// copied is what is kept now.
func (s *site) copied() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.kept)
}

func (s *site) restore(kept map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = maps.Clone(kept)
}

func (s *site) Secrets() []string { return []string{fakejira.Token} }

func (s *site) Fail(faults ...notifytest.Fault) {
	as := map[notifytest.Kind]fakejira.Fault{notifytest.Broken: fakejira.Code(503, 0), notifytest.Soft: fakejira.Page, notifytest.Bad: fakejira.Code(400, 0),
		notifytest.LostIn: fakejira.Lost, notifytest.LostOut: fakejira.Silent, notifytest.BadToken: fakejira.Code(401, 0), notifytest.Hangs: fakejira.Hangs}
	var all []fakejira.Fault
	for _, f := range faults {
		if f.Kind == notifytest.TooMany {
			all = append(all, fakejira.Code(429, f.After))
			continue
		}
		all = append(all, as[f.Kind])
	}
	s.Server.Fail(all...)
}

// Messages are the tickets that are of an incident.
func (s *site) Messages() []notifytest.Message {
	var out []notifytest.Message
	for _, i := range s.Issues() {
		for _, l := range i.Labels() {
			if id, ours := strings.CutPrefix(l, "unpend-prod-"); ours {
				out = append(out, notifytest.Message{Incident: id, Text: i.Summary() + "\n" + i.Shown()})
			}
		}
	}
	return out
}

// both runs a test on each deployment.
func both(t *testing.T, test func(t *testing.T, deployment string)) {
	for _, d := range []string{jira.Cloud, jira.DataCenter} {
		t.Run(d, func(t *testing.T) { test(t, d) })
	}
}

func TestSuite(t *testing.T) {
	both(t, func(t *testing.T, d string) {
		notifytest.Run(t, func(t *testing.T, c *notifytest.Clock) notifytest.Service {
			s := newSite(t, c, d)
			s.change = func(o *jira.Options) { o.Link = "https://unpend.example.com/incidents/{incident}" }
			return s
		})
	})
}

// told has people see proposals, one after the other.
func told(t *testing.T, n notice.Notifier, all ...notice.Proposal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, p := range all {
		if err := n.Notify(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
}
