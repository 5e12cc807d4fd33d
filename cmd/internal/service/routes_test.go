package service

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/watcher/incident"
)

// A route is for what is of one of its namespaces, of one of its causes and of its priority,
// or of one that nobody can tell; nothing is known of an incident without a finding.
func TestWhatARouteIsFor(t *testing.T) {
	of := func(namespace, cause string, priority *int32) notice.Proposal {
		return notice.Proposal{Finding: &diagnosis.Summary{Workload: incident.Ref{Namespace: namespace}, Causes: []diagnosis.CauseSummary{{ID: diagnosis.CauseID(cause)}}, Pods: diagnosis.WaitingPods{Priority: priority}}}
	}
	low, high, least := int32(999), int32(1000), int32(1000)
	r := route{Namespaces: []string{"team-*", "ml"}, Causes: []string{"MIGFull"}, MinPriority: &least}
	for name, c := range map[string]struct {
		p    notice.Proposal
		want bool
	}{
		"all of it":         {of("team-a", "MIGFull", &high), true},
		"another pattern":   {of("ml", "MIGFull", &high), true},
		"another namespace": {of("mlx", "MIGFull", &high), false},
		"another cause":     {of("ml", "NoNodes", &high), false},
		"one below":         {of("ml", "MIGFull", &low), false},
		"nobody can tell":   {of("ml", "MIGFull", nil), true},
		"nothing is known":  {notice.Proposal{}, false},
	} {
		if r.fits(c.p) != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
	if !(route{}).fits(notice.Proposal{}) || (route{MinPriority: &least}).fits(notice.Proposal{}) {
		t.Error("a route of anything, or one of a priority, for nothing that is known")
	}
}

// Destinations are told by their names: they are words of a NATS subject, and two are two.
func TestNamesOfDestinations(t *testing.T) {
	for at, want := range map[string]string{"C0123456789": "slack-C0123456789", "OPS": "slack-OPS", "/etc/a/team.a": "slack-team_a-", "/etc/b/team.a": "slack-team_a-", "https://am-0.ml:9093": "slack-am-0_ml_9093-", "": "slack-", "…": "slack-_-", strings.Repeat("x", 50): "slack-" + strings.Repeat("x", 40) + "-"} {
		if got := named("slack", at); !strings.HasPrefix(got, want) || strings.ContainsAny(got, " .*>/:") {
			t.Errorf("%q: %s", at, got)
		}
	}
	if named("pagerduty", "/etc/a/team.a") == named("pagerduty", "/etc/b/team.a") {
		t.Error("two files are one service")
	}
	var c Config
	c.PagerDuty.KeyFile = "/etc/main"
	c.Routes = []route{{At: map[string]string{"pagerduty": "/etc/a"}}, {At: map[string]string{"pagerduty": "/etc/a", "slack": "C1"}}, {At: map[string]string{"jira": "OPS"}}}
	var got []string
	for _, p := range places {
		for _, d := range p.destinations(c) {
			got = append(got, p.name+" "+d.at+" "+d.config.PagerDuty.KeyFile)
		}
	}
	if want := []string{"pagerduty  /etc/main", "pagerduty /etc/a /etc/a"}; !slices.Equal(got, want) { // what is not configured is nowhere
		t.Errorf("%q", got)
	}
}

// Each team is told in its own channel, and what nobody claims in the one that is configured;
// more urgent work pages another service.
func TestEachRouteItsChannel(t *testing.T) {
	t.Parallel() // it waits
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel, pager := fakeslack.New(time.Now), newPagerDuty(t)
	defer channel.Close()
	of := func(id, namespace string, priority int32) {
		publish(t, b, diagnosis.Diagnosis{Incident: "gpu-" + strings.Repeat(id, 10), Workload: incident.Ref{Kind: "Job", Namespace: namespace, Name: "x"}, Headline: id + " waits", Pods: diagnosis.WaitingPods{Waiting: 1, Since: time.Now(), Priority: &priority}})
	}
	of("a", "team-a", 0)
	of("b", "team-b", 0)
	of("c", "team-a", 1000)
	s, _ := teller(t, b, channel, remediations())
	pagedBy(t, s, pager)
	urgent := filepath.Join(t.TempDir(), "urgent.key")
	must(t, os.WriteFile(urgent, []byte(strings.Repeat("9", 32)), 0o600))
	everything, least := true, int32(1000)
	s.config.PagerDuty.When.Everything = &everything
	s.config.Routes = []route{{MinPriority: &least, To: []string{"slack", "pagerduty"}, At: map[string]string{"pagerduty": urgent}}, {Namespaces: []string{"team-a"}, To: []string{"slack"}, At: map[string]string{"slack": fakeslack.Other}}}
	must(t, s.config.checkRoutes())
	tells(t, s, "each where it belongs", func() bool {
		var got []string
		for _, m := range channel.Messages("") {
			got = append(got, m.Channel+" "+m.Text)
		}
		slices.Sort(got)
		paged, _ := pager.story()
		pages := strings.Split(paged, ", ")
		slices.Sort(pages)
		return fmt.Sprint(got) == "["+fakeslack.Channel+" b waits "+fakeslack.Channel+" c waits "+fakeslack.Other+" a waits]" && strings.Join(pages, ", ") == "trigger gpu-bbbbbbbbbb.01234567, trigger gpu-cccccccccc.01234567"
	})
	if keys := pager.keys(); keys != pagerKey+" gpu-bbbbbbbbbb, "+strings.Repeat("9", 32)+" gpu-cccccccccc" {
		t.Errorf("paged by %s", keys)
	}
	if got := fmt.Sprint(s.config.slackChannels()); got != "["+fakeslack.Channel+" "+fakeslack.Other+"]" {
		t.Errorf("clicks are heard in %s", got)
	}
}

// Every Alertmanager of a cluster of them is told; one that is away is said so, by its name,
// and holds up no other.
func TestAlertmanagersOfACluster(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	var told, tried atomic.Int32
	well := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Add(1) }))
	defer well.Close()
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tried.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer away.Close()
	s, _ := teller(t, b, channel, remediations())
	s.config.Outbound.Allow = []string{"127.0.0.1"}
	s.config.Alertmanager = alertmanagerConfig{URL: away.URL, URLs: []string{well.URL, away.URL}}
	s.config.Routes = []route{{To: []string{"alertmanager"}}}
	publish(t, b, diagnosis.Diagnosis{Incident: toldOf, Headline: "x waits", Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "x"}, Pods: diagnosis.WaitingPods{Waiting: 1, Since: time.Now()}})
	ready := func() string {
		w := httptest.NewRecorder()
		s.ready.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
		return w.Body.String()
	}
	says := ""
	tells(t, s, "the one that is there, and of the other", func() bool {
		says = ready()
		return told.Load() > 0 && tried.Load() > 0 && strings.Contains(says, "alertmanager is not told since ")
	})
	if strings.Contains(says, "alertmanager-") || len(channel.Messages("")) != 0 {
		t.Errorf("%s, and %d in the channel", says, len(channel.Messages("")))
	}
}
