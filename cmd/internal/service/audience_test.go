package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/slack/slacktest"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
)

// private is a team that reads a private channel too, and a project that few may be told of.
func private(t *testing.T) *team {
	t.Helper()
	m := newTeam(t)
	m.slack.Say("G1", slacktest.Message{"ts": fmt.Sprintf("%d.000300", time.Now().Unix()), "user": "U1", "text": "Xid 888 on node-3, blame ada"})
	m.config.Knowledge.Slack.PrivateChannels = []string{"gpu-oncall"}
	m.config.Knowledge.Tell = []tellRule{{Of: []string{"gpu-oncall"}, To: []string{"slack/C7"}}, {Of: []string{"GPU"}, To: []string{"jira/OPS", onPage}}}
	m.config.Slack.Channel = "C7"
	m.config.Jira.Project = "OPS"
	must(t, m.config.Knowledge.check(m.config.Slack))
	return m
}

// What is said in a private channel is found and quoted in that channel and where the
// configuration says, and nowhere else: no other channel, no page, no agent, no finding. So is
// what a rule keeps to some places.
func TestWhoMayBeToldOfWhat(t *testing.T) {
	s, _ := private(t).replica(t, "", true)
	has(t, s, threads+tickets+1)
	ctx := t.Context()
	for _, tc := range []struct {
		place       string
		oncall, gpu bool
	}{{everywhere, false, false}, {onMCP, false, false}, {onPage, false, true}, {"slack/C7", true, false}, {"slack/C1", false, false}, {"slack/G1", true, false}, {"jira/OPS", false, true}, {"jira/HR", false, false}, {"webhook", false, false}} {
		for words, want := range map[string]bool{"Xid 888": tc.oncall, "Xid 519": tc.gpu, "Xid 7": true} {
			hits, err := s.shelved(ctx, tc.place, words, 3)
			must(t, err)
			if want != (len(hits) == 1) {
				t.Errorf("%s in %q: found %+v", words, tc.place, hits)
			}
		}
		// A finding that was published when everybody might be told still has the quotes.
		var all []knowledge.Hit
		for _, words := range []string{"Xid 888", "Xid 519", "Xid 7"} {
			hits, err := s.shelf.index.Search(ctx, []string{words}, 1)
			must(t, err)
			all = append(all, hits...)
		}
		place, at, _ := strings.Cut(tc.place, "/")
		k := &sink{Service: s, place: place, at: at}
		p := notice.Proposal{Finding: &diagnosis.Summary{Causes: []diagnosis.CauseSummary{{ID: "Unknown", Says: "Xid 888"}}, Knowledge: all}}
		published := *p.Finding
		k.quote(ctx, &p)
		quoted := func(text string) bool {
			return slices.ContainsFunc(p.Finding.Knowledge, func(h knowledge.Hit) bool { return strings.Contains(h.Quote+h.Title, text) })
		}
		if quoted("Xid 888") != tc.oncall || quoted("Xid 519") && !tc.gpu || len(published.Knowledge) != 3 {
			t.Errorf("in %q is quoted %+v", tc.place, p.Finding.Knowledge)
		}
	}
	// Where a rule lets a place be told of more, it is looked for: the finding travels without.
	k := &sink{Service: s, place: "slack"}
	p := notice.Proposal{Finding: &diagnosis.Summary{Causes: []diagnosis.CauseSummary{{ID: "Unknown", Says: "Xid 888"}}, Knowledge: []knowledge.Hit{{Source: outcome, Title: "evicted"}}}}
	k.quote(ctx, &p)
	if got := p.Finding.Knowledge; len(got) != 2 || got[0].Title != "evicted" || !strings.Contains(got[1].Quote, "blame ada") {
		t.Errorf("quoted are %+v", got)
	}
}

// A process that reads nothing has those searched that do, for the place that it names.
func TestSearchOverTheBus(t *testing.T) {
	m := private(t)
	executor := &Service{config: m.config, now: time.Now, registry: prometheus.NewRegistry()}
	executor.config.Bus.URL = "nats://somewhere"
	executor.late = &lateBus{Service: executor, own: m.bus}
	if _, err := executor.searchInSlack(t.Context(), "C7", "Xid 888"); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), "no process that has read") {
		t.Errorf("nobody answers: %v", err)
	}
	s, _ := m.replica(t, "", true)
	has(t, s, threads+tickets+1)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.answerSearches(ctx, s.shelved) }()
	defer func() { end(); must(t, <-ended) }()
	for {
		if _, err := executor.search(t.Context(), "slack/C7", "Xid 7", 1); err == nil {
			break
		}
	}
	for channel, want := range map[string]string{"C7": "blame ada", "C1": "Nothing that the team has said is like it."} {
		says, err := executor.searchInSlack(t.Context(), channel, "Xid 888")
		must(t, err)
		if !strings.Contains(says, want) || strings.Contains(says, "ada") != (channel == "C7") {
			t.Errorf("in %s: %s", channel, says)
		}
	}
	for _, body := range []string{"", "{", `{"query":"x","most":0}`, `{"most":1,"query":"` + strings.Repeat("x", longestQuery+1) + `"}`} {
		if hits, err := answerTo(t.Context(), s.shelved, []byte(body)); err == nil {
			t.Errorf("%.20s: answered with %+v", body, hits)
		}
	}
	for want, change := range map[string]func(*Service){
		"set knowledge.folder": func(s *Service) { s.config.Knowledge = knowledgeConfig{} },
		"set bus.url":          func(s *Service) { s.config.Bus.URL = "" },
		"try again in a":       func(s *Service) { s.bus = m.bus },
	} {
		alone := &Service{config: executor.config}
		alone.late = &lateBus{Service: alone}
		change(alone)
		if _, err := alone.searchInSlack(t.Context(), "C7", "x"); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestTellRules(t *testing.T) {
	for want, r := range map[string]tellRule{
		"":                    {Of: []string{"gpu-oncall"}, To: []string{"slack", "slack/C1", "jira/OPS", "web", "mcp", "webhook", "kubectl"}},
		"it names nothing":    {Of: []string{"gpu-oncall"}},
		"it names nothing: ":  {To: []string{"slack"}},
		`to has "irc"`:        {Of: []string{"a"}, To: []string{"irc"}},
		`to has "slack/"`:     {Of: []string{"a"}, To: []string{"slack/"}},
		`to has "webhook/ab"`: {Of: []string{"a"}, To: []string{"webhook/ab"}},
	} {
		err := knowledgeConfig{Tell: []tellRule{r}}.check(slackConfig{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "knowledge.tell[0]: "+want)) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
