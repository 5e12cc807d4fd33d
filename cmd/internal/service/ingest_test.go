package service

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/knowledge/jira/jiratest"
	"github.com/unpend/unpend/knowledge/slack"
	"github.com/unpend/unpend/knowledge/slack/slacktest"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// team is what a team has said, in Slack and in Jira, and the bus that its words travel on.
type team struct {
	slack  *slacktest.Server
	jira   *jiratest.Server
	bus    *bus.Bus
	plans  *dynamicfake.FakeDynamicClient // of the cluster
	config Config
}

const threads, answered, tickets = 30, 5, 20

func newTeam(t *testing.T) *team {
	t.Helper()
	now := time.Now()
	at := func(n int) string { return fmt.Sprintf("%d.000100", now.Add(-40*24*time.Hour).Unix()+int64(n)) }
	m := &team{slack: slacktest.New(slacktest.Channel{ID: "C1", Name: "gpu-help"}, slacktest.Channel{ID: "C2", Name: "lunch"}, slacktest.Channel{ID: "G1", Name: "gpu-oncall", Private: true}), jira: jiratest.New(time.Now, true)}
	t.Cleanup(func() { m.slack.Close(); m.jira.Close() })
	for n := range threads {
		m.slack.Say("C1", slacktest.Message{"ts": at(10 * n), "user": "U1", "text": fmt.Sprintf("Xid %d on node-%d", n+1, n)})
		if n < answered { // each is a call, and Slack takes 50 a minute
			m.slack.Say("C1", slacktest.Message{"ts": at(10*n + 1), "thread_ts": at(10 * n), "user": "U2", "text": "reset it"})
		}
	}
	m.slack.Say("C2", slacktest.Message{"ts": at(0), "user": "U1", "text": "Xid 999 soup"})
	for n := range tickets {
		m.jira.Put(jiratest.Issue{Key: fmt.Sprintf("GPU-%d", n+1), Summary: fmt.Sprintf("Xid %d in Jira", 500+n), Created: now.Add(-time.Hour), Updated: now.Add(-time.Hour)})
	}
	m.jira.Put(jiratest.Issue{Key: "HR-1", Summary: "Xid 998 layoffs", Created: now, Updated: now})
	m.plans = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.Remediations: "RemediationList"})
	var err error
	m.bus, err = bus.Open(t.Context(), bus.Options{Cluster: "here", StoreDir: t.TempDir(), Documents: 8 << 20})
	must(t, err)
	t.Cleanup(m.bus.Close)
	token := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
		return file
	}
	m.config.Outbound.Allow = []string{"127.0.0.1"}
	m.config.Knowledge.Slack = knowledgeSlack{TokenFile: token("slack", slacktest.Token), Channels: []string{"#gpu-help"}, url: m.slack.URL()}
	m.config.Knowledge.Jira = knowledgeJira{URL: m.jira.URL(), Deployment: "cloud", User: jiratest.User, TokenFile: token("jira", jiratest.Token), Projects: []string{"GPU"}}
	must(t, m.config.Knowledge.check(m.config.Slack))
	return m
}

// replica is a process that knows what the team has said, and with leads reads it.
func (m *team) replica(t *testing.T, library string, leads bool) (s *Service, end func()) {
	t.Helper()
	s = &Service{config: m.config, bus: m.bus, custom: m.plans, logger: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry(), now: time.Now}
	s.config.Knowledge.Library = library
	s.late = &lateBus{Service: s}
	var err error
	s.shelf, err = s.openShelf(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	p, ctx := newParts(ctx)
	if leads {
		must(t, s.learn(ctx, p))
	} else {
		p.begin("stock", func() error { return s.stock(ctx) })
	}
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		must(t, p.Wait())
		must(t, s.shelf.close())
	}
	t.Cleanup(end)
	return s, end
}

// knows waits until a replica finds something, or finds it no more.
func knows(t *testing.T, s *Service, words string, want int) {
	t.Helper()
	until := time.Now().Add(20 * time.Second)
	for {
		hits, err := s.shelf.index.Search(t.Context(), []string{words}, 5)
		must(t, err)
		if len(hits) == want {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%s: found %+v, want %d", words, hits, want)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// has waits until a replica has so many documents.
func has(t *testing.T, s *Service, want int) {
	t.Helper()
	until := time.Now().Add(20 * time.Second)
	for s.shelf.index.Len() != want {
		if time.Now().After(until) {
			t.Fatalf("it has %d documents, want %d", s.shelf.index.Len(), want)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// One process reads for all. A replica whose library is lost has all of it again without a
// source being asked, and one that comes to lead reads nothing twice.
func TestLosingALibraryLosesNothing(t *testing.T) {
	m := newTeam(t)
	leader, end := m.replica(t, "", true)
	lost := t.TempDir()
	other, stop := m.replica(t, lost, false)
	for _, s := range []*Service{leader, other} {
		has(t, s, threads+tickets)
		for words, n := range map[string]int{"Xid 7": 1, "Xid 519": 1, "Xid 999": 0, "Xid 998": 0} {
			knows(t, s, words, n)
		}
	}
	if n := m.slack.Calls("conversations.replies"); n != answered {
		t.Errorf("%d threads were asked for, want %d", n, answered)
	}
	stop()
	must(t, os.RemoveAll(lost))
	asked := m.slack.Calls("conversations.history") + m.jira.Calls("search")
	again, stop := m.replica(t, lost, false)
	has(t, again, threads+tickets)
	knows(t, again, "Xid 7", 1)
	stop()
	end()
	if n := m.slack.Calls("conversations.history") + m.jira.Calls("search"); n != 0 || asked == 0 {
		t.Errorf("sources were asked %d times for a library that was lost", n)
	}
	last, _ := m.replica(t, lost, true)
	knows(t, last, "Xid 7", 1)
	until := time.Now().Add(20 * time.Second)
	for slack, jira := 0, 0; slack == 0 || jira == 0; <-time.After(10 * time.Millisecond) {
		slack += m.slack.Calls("conversations.history")
		jira += m.jira.Calls("search")
		if time.Now().After(until) {
			t.Fatalf("who leads next has asked Slack %d times and Jira %d times", slack, jira)
		}
	}
	has(t, last, threads+tickets)
	if n := m.slack.Calls("conversations.replies"); n != 0 {
		t.Errorf("who leads next asked for %d threads again", n)
	}
	if c := append(m.slack.Complaints(), m.jira.Complaints()...); len(c) > 0 {
		t.Error(c)
	}
}

// A bus that has lost everything gets it from the library of who leads.
func TestLosingTheBusLosesNothing(t *testing.T) {
	m := newTeam(t)
	kept := t.TempDir()
	first, end := m.replica(t, kept, true)
	has(t, first, threads+tickets)
	end()
	m.bus.Close()
	var err error
	m.bus, err = bus.Open(t.Context(), bus.Options{Cluster: "here", StoreDir: t.TempDir(), Documents: 8 << 20})
	must(t, err)
	t.Cleanup(m.bus.Close)
	m.slack.Calls("conversations.replies")
	_, _ = m.replica(t, kept, true)
	other, _ := m.replica(t, "", false)
	has(t, other, threads+tickets)
	if n := m.slack.Calls("conversations.replies"); n != 0 {
		t.Errorf("%d threads were asked for again", n)
	}
}

// What an event tells is read at once, and is known everywhere; so is what must not be quoted
// any more.
func TestNewsOfSlack(t *testing.T) {
	m := newTeam(t)
	leader, end := m.replica(t, "", true)
	other, _ := m.replica(t, "", false)
	has(t, other, threads+tickets)
	ts := fmt.Sprintf("%d.000200", time.Now().Unix())
	m.slack.Say("C1", slacktest.Message{"ts": ts, "user": "U1", "text": "Xid 777 on node-1"})
	must(t, note(t.Context(), leader.late.get, slack.News{Channel: "C1", Thread: ts}))
	knows(t, other, "Xid 777", 1)
	m.slack.Delete("C1", ts)
	must(t, note(t.Context(), leader.late.get, slack.News{Channel: "C1", Thread: ts}))
	knows(t, other, "Xid 777", 0)
	must(t, note(t.Context(), leader.late.get, slack.News{Channel: "C2", Thread: ts})) // nobody allowed it
	has(t, other, threads+tickets)
	end()
	m.config.Knowledge.Slack = knowledgeSlack{}
	m.replica(t, "", true)
	has(t, other, tickets)
	if n, err := m.bus.Parked(t.Context()); err != nil || n != 0 {
		t.Errorf("%d dead letters, %v", n, err)
	}
}

// What became of a plan is known to every process, and stays when the cluster has forgotten the
// plan and the process has ended.
func TestOutcomesTravel(t *testing.T) {
	m := newTeam(t)
	_, err := m.plans.Resource(v1alpha1.Remediations).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Remediation", "metadata": map[string]any{"name": "24ac8de5"},
		"spec":   map[string]any{"incident": "gpu-0123456789", "cause": "MIGLayoutMismatch", "kind": "RepartitionGPU", "title": "repartition gpu-zx1 to all-2g.10gb", "workload": map[string]any{"kind": "Job", "namespace": "ml", "name": "training"}, "waiting": []any{map[string]any{"namespace": "ml", "name": "training-0"}}},
		"status": map[string]any{"phase": "Failed", "message": "MIG manager says failed", "began": "2026-11-01T12:00:00.000000Z", "ended": "2026-11-01T12:04:00.000000Z", "approvedBy": []any{"ada"}},
	}}, metav1.CreateOptions{})
	must(t, err)
	leader, end := m.replica(t, "", true)
	other, stop := m.replica(t, "", false)
	has(t, other, threads+tickets+1)
	hits, err := other.shelved(t.Context(), everywhere, "repartition gpu-zx1", 3)
	must(t, err)
	if len(hits) != 1 || hits[0].Source != outcome || hits[0].Who != "ada" || !strings.Contains(hits[0].Quote, "did not help: MIG manager says failed") {
		t.Errorf("found %+v", hits)
	}
	must(t, m.plans.Resource(v1alpha1.Remediations).Delete(t.Context(), "24ac8de5", metav1.DeleteOptions{}))
	has(t, leader, threads+tickets+1)
	stop()
	end()
	again, _ := m.replica(t, "", true)
	has(t, again, threads+tickets+1)
	if says, err := again.searchInSlack(t.Context(), "C1", "repartition gpu-zx1"); err == nil || says != "" {
		t.Errorf("a process that does not diagnose has answered %q, %v", says, err)
	}
}

func TestKnowledgeConfig(t *testing.T) {
	read := func(text string) error {
		file := filepath.Join(t.TempDir(), "config.yaml")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ReadConfig(file)
		return err
	}
	for text, want := range map[string]string{
		"{folder: a, library: b, maxBytes: 1048576, slack: {tokenFile: t, appTokenFile: u, channels: [c], privateChannels: [d], every: 10m}, jira: {url: https://a.example, deployment: cloud, user: u, tokenFile: t, site: https://b.example, projects: [OPS], every: 1m, sweep: 1h}}": "",
		"{maxBytes: 5}":                                     "knowledge.maxBytes is 5",
		"{slack: {channels: [a]}}":                          "knowledge.slack.tokenFile is not given",
		"{slack: {tokenFile: t}}":                           "knowledge.slack.channels and knowledge.slack.privateChannels are empty",
		"{slack: {tokenFile: t, channels: [a], every: 1s}}": "knowledge.slack.every is 1s: it has to be 1m0s or more",
		"{slack: {token: t}}":                               "knowledge.slack.token: there is no such key",
		"{jira: {url: https://a.example, deployment: cloud, tokenFile: t, projects: [OPS]}}":                  "knowledge.jira.user is not given",
		"{jira: {url: https://a.example, deployment: cloud, user: u, projects: [OPS]}}":                       "knowledge.jira.tokenFile is not given",
		"{jira: {url: https://a.example, deployment: datacenter, tokenFile: t}}":                              "knowledge.jira.projects is empty",
		"{jira: {url: https://a.example, deployment: datacenter, tokenFile: t, projects: [ops]}}":             `knowledge.jira.projects has "ops"`,
		"{jira: {url: 'https://me:secret@a.example', deployment: datacenter, tokenFile: t, projects: [OPS]}}": "knowledge.jira.url has a user",
		"{jira: {url: https://a.example, deployment: server, tokenFile: t, projects: [OPS]}}":                 `knowledge.jira.deployment is "server"`,
	} {
		err := read("knowledge: " + text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := read("slack: {channel: C1, tokenFile: t, appTokenFile: u}\nknowledge: {slack: {tokenFile: t, appTokenFile: u, channels: [c]}}"); err == nil || !strings.Contains(err.Error(), "leave it out") {
		t.Errorf("one app heard twice: %v", err)
	}
}
