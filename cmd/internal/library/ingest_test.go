package library

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
	"github.com/unpend/unpend/cmd/internal/parts"
	"github.com/unpend/unpend/knowledge/jira/jiratest"
	"github.com/unpend/unpend/knowledge/slack"
	"github.com/unpend/unpend/knowledge/slack/slacktest"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// team is what a team has said, in Slack and in Jira, and the bus that its words travel on.
type team struct {
	slack  *slacktest.Server
	jira   *jiratest.Server
	bus    *bus.Bus
	plans  *dynamicfake.FakeDynamicClient // of the cluster
	config Config
	now    func() time.Time // of replicas
}

// told are the places of the service that people are told in.
var told = []string{"web", "mcp", "slack", "jira", "pagerduty", "alertmanager", "opsgenie", "webhook", "kubectl"}

const threads, answered, tickets = 30, 5, 20

func newTeam(t *testing.T) *team {
	t.Helper()
	now := time.Now()
	at := func(n int) string { return fmt.Sprintf("%d.000100", now.Add(-40*24*time.Hour).Unix()+int64(n)) }
	m := &team{now: time.Now, slack: slacktest.New(slacktest.Channel{ID: "C1", Name: "gpu-help"}, slacktest.Channel{ID: "C2", Name: "lunch"}, slacktest.Channel{ID: "G1", Name: "gpu-oncall", Private: true}), jira: jiratest.New(time.Now, true)}
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
	m.plans = noPlans()
	var err error
	m.bus, err = bus.Open(t.Context(), bus.Options{Cluster: "here", StoreDir: t.TempDir(), Documents: 8 << 20})
	must(t, err)
	t.Cleanup(m.bus.Close)
	token := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
		return file
	}
	m.config.Slack = Slack{TokenFile: token("slack", slacktest.Token), Channels: []string{"#gpu-help"}, url: m.slack.URL()}
	m.config.Jira = Jira{URL: m.jira.URL(), Deployment: "cloud", User: jiratest.User, TokenFile: token("jira", jiratest.Token), Projects: []string{"GPU"}}
	must(t, m.config.Check(told, ""))
	return m
}

// noPlans is a cluster in which none was recorded.
func noPlans() *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.Remediations: "RemediationList"})
}

// replica is a process that knows what the team has said, and with leads reads it.
func (m *team) replica(t *testing.T, dir string, leads bool) (l *Library, end func()) {
	t.Helper()
	config := m.config
	config.Library = dir
	l, err := Open(t.Context(), Options{Config: config, Allow: []string{"127.0.0.1"}, Bus: m.bus, Lead: always, Outcomes: plan.Store{Dynamic: m.plans}.Outcomes, Quotes: true, Reads: true,
		Now: m.now, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	p, ctx := parts.New(ctx)
	if leads {
		p.Begin("knowledge", func() error { return l.Run(ctx) })
	} else {
		p.Begin("stock", func() error { return l.stock(ctx) })
	}
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		must(t, p.Wait())
		must(t, l.Close())
	}
	t.Cleanup(end)
	return l, end
}

// always is who leads alone.
func always(ctx context.Context) (context.Context, error) { return ctx, ctx.Err() }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// comes waits until something is so; what is told where it does not come.
func comes(t *testing.T, is func() (bool, string)) {
	t.Helper()
	until := time.Now().Add(time.Minute)
	for {
		so, why := is()
		if so {
			return
		}
		if time.Now().After(until) {
			t.Fatal(why)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// knows waits until a replica finds something, or finds it no more.
func knows(t *testing.T, l *Library, words string, want int) {
	t.Helper()
	comes(t, func() (bool, string) {
		hits, err := l.index.Search(t.Context(), []string{words}, 5)
		must(t, err)
		return len(hits) == want, fmt.Sprintf("%s: found %+v, want %d", words, hits, want)
	})
}

// has waits until a replica has so many documents.
func has(t *testing.T, l *Library, want int) {
	t.Helper()
	comes(t, func() (bool, string) {
		n := l.index.Len()
		return n == want, fmt.Sprintf("it has %d documents, want %d", n, want)
	})
}

// reads waits until a replica has read Slack and Jira to their ends.
func reads(t *testing.T, l *Library) {
	t.Helper()
	all, _ := l.Registerer.(*prometheus.Registry)
	comes(t, func() (bool, string) {
		families, err := all.Gather()
		must(t, err)
		var ended []string
		for _, f := range families {
			if f.GetName() == "unpend_knowledge_read_timestamp_seconds" {
				for _, m := range f.GetMetric() {
					ended = append(ended, m.GetLabel()[0].GetValue())
				}
			}
		}
		return slices.Contains(ended, "slack") && slices.Contains(ended, "jira"), fmt.Sprintf("read to their ends are %q", ended)
	})
}

// One process reads for all. A replica whose library is lost has all of it again without a
// source being asked, and one that comes to lead reads nothing twice.
func TestLosingALibraryLosesNothing(t *testing.T) {
	m := newTeam(t)
	leader, end := m.replica(t, "", true)
	lost := t.TempDir()
	other, stop := m.replica(t, lost, false)
	for _, l := range []*Library{leader, other} {
		has(t, l, threads+tickets)
		for words, n := range map[string]int{"Xid 7": 1, "Xid 519": 1, "Xid 999": 0, "Xid 998": 0} {
			knows(t, l, words, n)
		}
	}
	reads(t, leader)
	if n := m.slack.Calls("conversations.replies"); n != answered {
		t.Errorf("%d threads were asked for, want %d", n, answered)
	}
	stop()
	must(t, os.RemoveAll(lost))
	asked := func() (slack, jira int) { return m.slack.Calls("conversations.history"), m.jira.Calls("search") }
	slack, jira := asked()
	again, stop := m.replica(t, lost, false)
	has(t, again, threads+tickets)
	knows(t, again, "Xid 7", 1)
	stop()
	end()
	if s, j := asked(); s != slack || j != jira || s == 0 || j == 0 {
		t.Errorf("Slack was asked %d times and Jira %d times, and %d and %d times once a library was lost", slack, jira, s, j)
	}
	last, _ := m.replica(t, lost, true)
	knows(t, last, "Xid 7", 1)
	reads(t, last)
	if s, j := asked(); s == slack || j == jira {
		t.Errorf("who leads next has asked Slack %d times and Jira %d times", s-slack, j-jira)
	}
	has(t, last, threads+tickets)
	if n := m.slack.Calls("conversations.replies"); n != answered {
		t.Errorf("who leads next asked for %d threads again", n-answered)
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
	reads(t, first)
	end()
	m.bus.Close()
	var err error
	m.bus, err = bus.Open(t.Context(), bus.Options{Cluster: "here", StoreDir: t.TempDir(), Documents: 8 << 20})
	must(t, err)
	t.Cleanup(m.bus.Close)
	before := m.slack.Calls("conversations.replies")
	next, _ := m.replica(t, kept, true)
	other, _ := m.replica(t, "", false)
	has(t, other, threads+tickets)
	reads(t, next)
	if n := m.slack.Calls("conversations.replies") - before; n != 0 {
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
	must(t, note(t.Context(), leader.Bus, slack.News{Channel: "C1", Thread: ts}))
	knows(t, other, "Xid 777", 1)
	m.slack.Delete("C1", ts)
	must(t, note(t.Context(), leader.Bus, slack.News{Channel: "C1", Thread: ts}))
	knows(t, other, "Xid 777", 0)
	must(t, note(t.Context(), leader.Bus, slack.News{Channel: "C2", Thread: ts})) // nobody allowed it
	has(t, other, threads+tickets)
	end()
	m.config.Slack = Slack{}
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
	hits, err := other.Find(t.Context(), Everywhere, "repartition gpu-zx1", 3)
	must(t, err)
	if len(hits) != 1 || hits[0].Source != Outcome || hits[0].Who != "ada" || !strings.Contains(hits[0].Quote, "did not help: MIG manager says failed") {
		t.Errorf("found %+v", hits)
	}
	must(t, m.plans.Resource(v1alpha1.Remediations).Delete(t.Context(), "24ac8de5", metav1.DeleteOptions{}))
	has(t, leader, threads+tickets+1)
	stop()
	end()
	again, _ := m.replica(t, "", true)
	has(t, again, threads+tickets+1)
}
