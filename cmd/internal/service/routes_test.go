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
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/watcher/incident"
)

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
	s.config.Routes = []settings.Route{{MinPriority: &least, To: []string{"slack", "pagerduty"}, At: map[string]string{"pagerduty": urgent}}, {Namespaces: []string{"team-a"}, To: []string{"slack"}, At: map[string]string{"slack": fakeslack.Other}}}
	must(t, s.config.CheckRoutes())
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
	if got := fmt.Sprint(s.config.SlackChannels()); got != "["+fakeslack.Channel+" "+fakeslack.Other+"]" {
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
	s.config.Alertmanager.URL, s.config.Alertmanager.URLs = away.URL, []string{well.URL, away.URL}
	s.config.Routes = []settings.Route{{To: []string{"alertmanager"}}}
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
