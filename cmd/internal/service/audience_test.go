package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/library"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/testdata/controlplane"
)

// reader is a process that has read a public channel, a private one and a project that few may
// be told of.
func reader(t *testing.T, b *bus.Bus) *Service {
	t.Helper()
	s := &Service{bus: b, logger: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry(), now: time.Now}
	c := &s.config.Knowledge
	c.Library = t.TempDir()
	c.Slack = library.Slack{TokenFile: "token", Channels: []string{"gpu-help"}, PrivateChannels: []string{"gpu-oncall"}}
	c.Tell = []library.TellRule{{Of: []string{"gpu-oncall"}, To: []string{"slack/C7"}}, {Of: []string{"GPU"}, To: []string{"jira/OPS", settings.OnPage}}}
	must(t, c.Check(settings.QuotedIn(), ""))
	s.config.Slack.Channel, s.config.Jira.Project = "C7", "OPS"
	l, err := knowledge.EditLibrary(c.Library)
	must(t, err)
	var all []knowledge.Change
	for _, d := range []knowledge.Document{{Source: "slack", Part: "C1", PartName: "gpu-help", Text: "Xid 7 on node-6"}, {Source: "slack", Part: "G1", PartName: "gpu-oncall", Private: true, Text: "Xid 888 on node-3, blame ada"}, {Source: "jira", Part: "GPU", PartName: "The GPU", Text: "Xid 519 in Jira"}} {
		d.ID, d.Title, d.At = d.Source+"/"+d.Part+"/1", d.Text, time.Now().UTC().Truncate(time.Second)
		all = append(all, knowledge.Change{ID: d.ID, Document: &d})
	}
	must(t, l.Apply(t.Context(), all))
	must(t, l.Close())
	s.library, err = s.openLibrary(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, s.library.Close()) })
	return s
}

// Beside a finding stands what may be told in its place, also where it was published when
// everybody might be told more.
func TestQuotedIsWhatMayBeTold(t *testing.T) {
	s := reader(t, nil)
	ctx := t.Context()
	var all []knowledge.Hit
	for _, at := range [][2]string{{"slack/G1", "Xid 888"}, {"jira/OPS", "Xid 519"}, {"slack", "Xid 7"}} {
		hits, err := s.library.Find(ctx, at[0], at[1], 1)
		must(t, err)
		all = append(all, hits...)
	}
	if len(all) != 3 {
		t.Fatalf("read are %+v", all)
	}
	for _, tc := range []struct {
		place       string
		oncall, gpu bool
	}{{settings.OnMCP, false, false}, {settings.OnPage, false, true}, {"slack/C7", true, false}, {"slack/C1", false, false}, {"slack/G1", true, false}, {"jira/OPS", false, true}, {"jira/HR", false, false}, {"webhook", false, false}} {
		place, at, _ := strings.Cut(tc.place, "/")
		k := &sink{Service: s, place: place, at: at}
		p := notice.Proposal{Finding: &diagnosis.Summary{Causes: []diagnosis.CauseSummary{{ID: "Unknown", Says: "Xid 888"}}, Knowledge: slices.Clone(all)}}
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
	p := notice.Proposal{Finding: &diagnosis.Summary{Causes: []diagnosis.CauseSummary{{ID: "Unknown", Says: "Xid 888"}}, Knowledge: []knowledge.Hit{{Source: library.Outcome, Title: "evicted"}}}}
	k.quote(ctx, &p)
	if got := p.Finding.Knowledge; len(got) != 2 || got[0].Title != "evicted" || !strings.Contains(got[1].Quote, "blame ada") {
		t.Errorf("quoted are %+v", got)
	}
}

// A process that reads nothing has those searched that do, for the place that it names; where
// that cannot be, it says what to do.
func TestSearchOfAProcessThatReadsNothing(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	s := reader(t, b)
	executor := &Service{config: s.config, now: time.Now, registry: prometheus.NewRegistry()}
	executor.config.Bus.URL = "nats://somewhere"
	executor.late = &lateBus{Service: executor, own: b}
	if _, err := executor.searchInSlack(t.Context(), "C7", "Xid 888"); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), "no process that has read") {
		t.Errorf("nobody answers: %v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.library.Answer(ctx) }()
	defer func() { end(); must(t, <-ended) }()
	controlplane.Eventually(t, time.Minute, "somebody answers", func() (bool, string) {
		_, err := executor.search(t.Context(), "slack/C7", "Xid 7", 1)
		return err == nil, fmt.Sprint(err)
	})
	for channel, want := range map[string]string{"C7": "blame ada", "C1": "Nothing that the team has said is like it."} {
		says, err := executor.searchInSlack(t.Context(), channel, "Xid 888")
		must(t, err)
		if !strings.Contains(says, want) || strings.Contains(says, "ada") != (channel == "C7") {
			t.Errorf("in %s: %s", channel, says)
		}
	}
	for want, change := range map[string]func(*Service){
		"set knowledge.folder": func(s *Service) { s.config.Knowledge = library.Config{} },
		"set bus.url":          func(s *Service) { s.config.Bus.URL = "" },
		"try again in a":       func(s *Service) { s.bus = b },
	} {
		alone := &Service{config: executor.config}
		alone.late = &lateBus{Service: alone}
		change(alone)
		if _, err := alone.searchInSlack(t.Context(), "C7", "x"); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
