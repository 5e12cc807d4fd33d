package service

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/jira/fakejira"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/watcher/incident"
)

// tracker has a teller tell in a Jira as well.
func tracker(t *testing.T, s *Service, site *fakejira.Server) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte(fakejira.Token+"\n"), 0o600))
	c := &s.config.Jira
	c.URL, c.Deployment, c.User, c.TokenFile, c.Project, c.IssueType, c.Cluster = site.URL(), "cloud", fakejira.User, token, fakejira.Project, fakejira.Type, "prod"
	s.config.Outbound.Allow = []string{"127.0.0.1"}
}

// A project that wants a field that nobody configured is told before there is anything to
// tell: in /readyz, which stays ready, and once in the log. Slack is told meanwhile, and Jira
// of everything once the field is wanted no more (R25).
func jiraFailsAlone(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel, site := fakeslack.New(time.Now), fakejira.New(time.Now, true)
	defer channel.Close()
	defer site.Close()
	site.Require("customfield_10042", "Cost centre")
	s, log := teller(t, b, channel, remediations())
	tracker(t, s, site)
	const why = `OPS wants the field "Cost centre" for a new Task, and nobody configured it: set jira.fields.customfield_10042, or make it optional in Jira`
	ready := func() string {
		w := httptest.NewRecorder()
		s.ready.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
		return w.Result().Status + " " + w.Body.String()
	}
	published, mended := false, false
	d := diagnosis.Diagnosis{Incident: toldOf, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Pods: diagnosis.WaitingPods{Waiting: 1, Since: time.Now()}, Headline: "ml/training waits: needs a 2g"}
	tells(t, s, "the ticket, in the end", func() bool {
		is := ready()
		said := strings.HasPrefix(is, "200 OK ok\njira is not told since ") && strings.HasSuffix(is, ": "+why+"\n")
		if said && !published {
			publish(t, b, d)
			published = true
		}
		if len(channel.Messages("")) == 1 && !mended {
			if len(site.Issues()) != 0 {
				t.Error("a ticket was made before the project was looked at")
			}
			site.Optional("customfield_10042")
			mended = true
		}
		return len(site.Issues()) == 1 && ready() == "200 OK ok\n"
	})
	if is := site.Issues()[0]; is.Summary() != d.Headline || len(channel.Messages("")) != 1 || strings.Join(is.Labels(), " ") != "unpend unpend-prod-"+toldOf {
		t.Errorf("%+v", is)
	}
	if got := log.String(); strings.Count(got, "people are not told") != 1 || strings.Count(got, "people are told again") != 1 || strings.Contains(got, fakejira.Token) {
		t.Errorf("the log says %s", got)
	}
	if wrong := site.Complaints(); len(wrong) > 0 {
		t.Errorf("Jira would not have taken it: %q", wrong)
	}
}

// An address inside that is not listed is refused before anything is told (S14).
func TestJiraWhereNobodyMaySpeak(t *testing.T) {
	site := fakejira.New(time.Now, true)
	defer site.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	s, _ := teller(t, nil, channel, remediations())
	tracker(t, s, site)
	s.config.Outbound.Allow = nil
	if err := s.tellPeople(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "jira.url: http://127.0.0.1:") || !strings.HasSuffix(err.Error(), "may not be spoken to without TLS: write https://, or list 127.0.0.1 in outbound.allow") {
		t.Error(err)
	}
}
