package jira_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/jira"
	"github.com/unpend/unpend/remediate/jira/fakejira"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
)

const (
	incidentID = "gpu-0123456789"
	plan       = "24ac8de5f00d24ac8de5f00d24ac8de5f00d24ac8de5f00d24ac8de5f00d0000"
)

// offer is a finding with a fix that stops two pods.
func offer() notice.Proposal {
	p := notifytest.Finding(incidentID, "ml/training waits 14 min: needs 1×2g.10gb, no GPU is laid out so")
	p.Finding.Fixes = []diagnosis.FixSummary{{ID: 1, Kind: diagnosis.RepartitionGPU, Kinds: []diagnosis.FixKind{diagnosis.RepartitionGPU}, Title: `repartition gpu-1/GPU 0 to "all-2g.10gb"`, Automatic: true, Class: diagnosis.HarmsNobody,
		Cost: diagnosis.Cost{Evictions: []diagnosis.PodName{{Namespace: "ml", Name: "web-1"}, {Namespace: "ml", Name: "web-2"}}, Minutes: 4}, EvictionCount: 2, Effect: &diagnosis.Effect{Runs: 1, Of: 1}, Risk: diagnosis.LowRisk,
		Proof: diagnosis.Proof{Verdict: diagnosis.Schedules, Node: "gpu-1", Why: "the scheduler's filters accept gpu-1"}, Steps: []string{"cordon gpu-1"}, Commands: []string{"kubectl cordon gpu-1"}, Plan: plan}}
	return p
}

func at(minute int) time.Time { return time.Date(2026, 11, 22, 14, minute, 0, 0, time.UTC) }

// withPlan is the proposal as a plan for it stands.
func withPlan(what string, change func(*notice.Notice)) notice.Proposal {
	p := offer()
	n := notice.Notice{What: what, Incident: incidentID, Plan: plan, Title: "repartition gpu-1/GPU 0", Node: "gpu-1", Since: at(3), Began: at(3), Approvers: []string{"ada"}}
	if change != nil {
		change(&n)
	}
	p.Plans = []notice.Notice{n}
	return p
}

// said is what its comments say.
func said(i fakejira.Issue) (all []string) {
	for _, c := range i.Comments {
		all = append(all, c.Shown())
	}
	return all
}

func resolved(p notice.Proposal, when time.Time) notice.Proposal {
	p.Resolved = when
	return p
}

func succeeded(n *notice.Notice) { n.Since, n.Reason = at(7).Add(12*time.Second), "ml/training-0 runs" }

// only is the one ticket there is.
func (s *site) only(t *testing.T) fakejira.Issue {
	t.Helper()
	all := s.Issues()
	if len(all) != 1 {
		t.Fatalf("%d tickets", len(all))
	}
	return all[0]
}

// One ticket lives through an incident: it is made with everything, edited as the plan goes
// on, each thing that happens is a comment, its link is one, and it is done when nobody waits.
func TestLifeOfATicket(t *testing.T) {
	both(t, func(t *testing.T, d string) {
		clock := notifytest.NewClock()
		s := newSite(t, clock, d)
		s.change = func(o *jira.Options) {
			o.Priority, o.Components, o.Labels, o.Fields = "High", []string{"gpu"}, []string{"oncall"}, map[string]any{"customfield_10001": "infra"}
			o.Link, o.DoneStatus = "https://unpend.example.com/incidents/{incident}", "won't do"
		}
		n := s.New(t, clock, slog.New(slog.DiscardHandler))
		var history []string
		for i, step := range []struct {
			p       notice.Proposal
			says    []string
			history string
			status  string
			edits   int
		}{
			{offer(), []string{"ml/training (Job): 1 pod waits since 2026-11-22 13:48 UTC, wants 1 × nvidia.com/mig-2g.10gb", "• 1 node gpu-1: not laid out with 2g.10gb (MIGLayoutMismatch)", "1. repartition gpu-1/GPU 0 to \"all-2g.10gb\"",
				"• 1 of 1 pod runs · stops 2 pods · takes ~4 min · risk low", "• stops ml/web-1, ml/web-2", "• step 1: cordon gpu-1", "\nkubectl cordon gpu-1\n", "kubectl unpend approve gpu-0123456789#1"}, "", "To Do", 0},
			{withPlan(notice.Pending, func(n *notice.Notice) { n.Approvers, n.Began = nil, time.Time{} }), []string{"plan 24ac8de5f00d is recorded, and nobody has decided"}, "2026-11-22 14:03 UTC  plan 24ac8de5f00d is recorded, and nobody has decided: repartition gpu-1/GPU 0\n\nunpend 24ac8de5f00d pending\n", "To Do", 1},
			{withPlan(notice.Running, func(n *notice.Notice) { n.Progress, n.Step = "2/9", "evict ml/web-1" }), []string{"approved by ada → plan 24ac8de5f00d is being carried out: repartition gpu-1/GPU 0"},
				"2026-11-22 14:03 UTC  approved by ada → plan 24ac8de5f00d is being carried out: repartition gpu-1/GPU 0\n\nunpend 24ac8de5f00d running\n", "To Do", 2},
			{withPlan(notice.Running, func(n *notice.Notice) { n.Progress, n.Step, n.Since = "3/9", "evict ml/web-2", at(4) }), nil, "", "To Do", 2},
			{withPlan(notice.Succeeded, succeeded), []string{"approved by ada → done in 4m12s: repartition gpu-1/GPU 0. ml/training-0 runs"}, "2026-11-22 14:07 UTC  approved by ada → done in 4m12s: repartition gpu-1/GPU 0. ml/training-0 runs\n\nunpend 24ac8de5f00d succeeded\n", "To Do", 3},
			{resolved(withPlan(notice.Succeeded, succeeded), at(8)), []string{"Nobody of it waits any more since 2026-11-22 14:08 UTC."}, fmt.Sprintf("2026-11-22 14:08 UTC  nobody of it waits any more\n\nunpend over %d\n", at(8).Unix()), "Won't Do", 4},
		} {
			told(t, n, step.p, step.p)
			is := s.only(t)
			for _, want := range step.says {
				if !strings.Contains(is.Shown(), want) {
					t.Errorf("step %d: %q is not in:\n%s", i, want, is.Shown())
				}
			}
			if is.Summary() != offer().Finding.Headline || is.Status != step.status || is.Edits != step.edits {
				t.Errorf("step %d: %s, %s after %d edits", i, is.Summary(), is.Status, is.Edits)
			}
			if step.history != "" {
				history = append(history, step.history)
			}
			if diff := cmp.Diff(history, said(is)); diff != "" {
				t.Errorf("step %d: its comments are not those: %s", i, diff)
			}
			if len(is.Links) != 1 || is.Links[0].Object["url"] != "https://unpend.example.com/incidents/gpu-0123456789" {
				t.Errorf("step %d: its links are %+v", i, is.Links)
			}
		}
		is := s.only(t)
		delete(is.Fields, "description")
		want := map[string]any{"project": map[string]any{"key": "OPS"}, "issuetype": map[string]any{"id": "10004"}, "summary": offer().Finding.Headline, "labels": []any{"unpend", "unpend-prod-gpu-0123456789", "oncall"},
			"priority": map[string]any{"name": "High"}, "components": []any{map[string]any{"name": "gpu"}}, "customfield_10001": "infra"}
		if diff := cmp.Diff(want, is.Fields); diff != "" {
			t.Error(diff)
		}
		if slices.ContainsFunc(is.Comments, func(c fakejira.Comment) bool { return c.Edits != 0 }) {
			t.Errorf("what has happened was edited: %+v", is.Comments)
		}
		if is.Links[0].Edits != 1 || fmt.Sprint(is.Links[0].Object["status"]) != "map[resolved:true]" {
			t.Errorf("%+v", is.Links)
		}
	})
}

// A node that is parked keeps its ticket open when nobody waits any more: somebody has to
// come, and closes it.
func TestParkedStaysOpen(t *testing.T) {
	both(t, func(t *testing.T, d string) {
		clock := notifytest.NewClock()
		s := newSite(t, clock, d)
		told(t, s.New(t, clock, nil), withPlan(notice.Parked, nil), resolved(withPlan(notice.Parked, nil), at(8)))
		is := s.only(t)
		if is.Status != "To Do" || !strings.Contains(is.Shown(), "left its node cordoned, on purpose: somebody has to come: repartition gpu-1/GPU 0: kubectl unpend release gpu-1") || !strings.Contains(said(is)[0], "kubectl unpend release gpu-1\n") {
			t.Errorf("%s:\n%s\n%q", is.Status, is.Shown(), said(is))
		}
	})
}

// What waits again within the time opens its ticket again, and later is another ticket; what
// was kept may be lost in between.
func TestWaitsAgain(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		after   time.Duration // of the next wait's beginning, since the last was over
		reopen  time.Duration
		lost    bool
		tickets int
	}{
		"soon":                 {day, jira.DefaultReopen, false, 1},
		"late":                 {8 * day, jira.DefaultReopen, false, 2},
		"never opened again":   {time.Hour, 0, false, 2},
		"soon, nothing known":  {day, jira.DefaultReopen, true, 1},
		"late, nothing known":  {8 * day, jira.DefaultReopen, true, 2},
		"never, nothing known": {time.Hour, 0, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, d string) {
				clock := notifytest.NewClock()
				s := newSite(t, clock, d)
				s.Behind = 0
				s.change = func(o *jira.Options) { o.Reopen = tc.reopen }
				told(t, s.New(t, clock, nil), offer(), resolved(offer(), clock.Now()))
				over := clock.Now()
				if is := s.only(t); is.Status != "Done" {
					t.Fatalf("it is %s", is.Status)
				}
				if err := clock.Sleep(t.Context(), tc.after+time.Minute); err != nil {
					t.Fatal(err)
				}
				if tc.lost {
					s.lose()
				}
				again := offer()
				again.Finding.Pods.Since = over.Add(tc.after)
				told(t, s.New(t, clock, nil), again)
				all := s.Issues()
				if last := all[len(all)-1]; len(all) != tc.tickets || last.Status != "To Do" || tc.tickets == 2 && all[0].Status != "Done" || tc.tickets == 1 && !tc.lost && strings.Count(fmt.Sprint(said(last)), "it waits again") != 1 {
					t.Errorf("%d tickets, the last %+v", len(all), last)
				}
				told(t, s.New(t, clock, nil), resolved(again, clock.Now()))
				if is := s.Issues(); len(is) != tc.tickets || is[len(is)-1].Status != "Done" {
					t.Errorf("%d tickets, the last %s", len(is), is[len(is)-1].Status)
				}
			})
		})
	}
}

// A ticket that a person has closed stays closed while the same wait goes on; one that is
// gone is made again; a comment that is gone is not.
func TestPeopleDecide(t *testing.T) {
	both(t, func(t *testing.T, d string) {
		clock := notifytest.NewClock()
		s := newSite(t, clock, d)
		s.Behind = 0
		n := s.New(t, clock, nil)
		told(t, n, withPlan(notice.Pending, nil))
		s.Change("OPS-1", func(i *fakejira.Issue) { i.Status = "Won't Do" })
		told(t, n, withPlan(notice.Running, nil))
		s.lose()
		told(t, s.New(t, clock, nil), withPlan(notice.Succeeded, succeeded))
		told(t, s.New(t, clock, nil), resolved(withPlan(notice.Succeeded, succeeded), at(8)))
		if is := s.only(t); is.Status != "Won't Do" || !strings.Contains(is.Shown(), "done in 4m12s") || len(is.Comments) != 4 {
			t.Errorf("%+v", is)
		}
	})
	both(t, func(t *testing.T, d string) {
		clock := notifytest.NewClock()
		s := newSite(t, clock, d)
		n := s.New(t, clock, nil)
		told(t, n, withPlan(notice.Pending, nil))
		s.Change("OPS-1", func(i *fakejira.Issue) { i.Comments = nil })
		told(t, n, withPlan(notice.Running, nil))
		if is := s.only(t); len(is.Comments) != 1 || !strings.Contains(said(is)[0], "being carried out") {
			t.Errorf("the comment was deleted: %+v", is.Comments)
		}
		s.Delete("OPS-1")
		told(t, n, withPlan(notice.Succeeded, succeeded))
		if is := s.only(t); is.Key == "OPS-1" || !strings.Contains(is.Shown(), "done in 4m12s") || len(is.Comments) != 1 {
			t.Errorf("the ticket was deleted: %+v", is)
		}
	})
}

// An incident that nobody was told of, and that is over, is no ticket.
func TestNothingToTell(t *testing.T) {
	clock := notifytest.NewClock()
	s := newSite(t, clock, jira.Cloud)
	told(t, s.New(t, clock, nil), notice.Proposal{Incident: incidentID, Resolved: at(1)}, resolved(offer(), at(8)))
	if s.Writes() != 0 {
		t.Errorf("%d writes", s.Writes())
	}
}

// killer is a way to Jira on which a process is killed when it asks for its nth write: before
// Jira has done it, or after, and before the process hears of it.
type killer struct {
	left int
	done bool
	die  func()
}

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/search") {
		return http.DefaultTransport.RoundTrip(r)
	}
	if k.left--; k.left != 0 {
		return http.DefaultTransport.RoundTrip(r)
	}
	if k.done {
		a, err := http.DefaultTransport.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
		if err != nil {
			return nil, err
		}
		a.Body.Close()
	}
	k.die()
	return nil, r.Context().Err()
}

// A process that is killed at any write, before or after Jira has done it, leaves one ticket,
// one comment of each thing that happened and one link behind, also where what it kept is
// lost with it (R5).
func promiseR5(t *testing.T) {
	both(t, func(t *testing.T, d string) {
		killed := 0
		for nth := 1; ; nth++ {
			struck := false
			for _, how := range []struct{ done, lost bool }{{false, false}, {true, false}, {true, true}} {
				clock := notifytest.NewClock()
				s := newSite(t, clock, d)
				if s.Behind = 3; how.lost {
					s.Behind = 0 // else nothing says that it is there
				}
				var kept map[string][]byte
				ctx, cancel := context.WithCancel(t.Context())
				k := &killer{left: nth, done: how.done, die: func() { kept, struck = s.copied(), true; cancel() }}
				s.change = func(o *jira.Options) {
					o.Link, o.HTTP = "https://unpend.example.com/incidents/{incident}", &http.Client{Transport: k}
				}
				n := s.New(t, clock, nil)
				for _, p := range []notice.Proposal{offer(), withPlan(notice.Running, nil), resolved(withPlan(notice.Succeeded, succeeded), at(8))} {
					if err := n.Notify(ctx, p); err == nil {
						continue
					} else if !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
					if s.restore(kept); how.lost {
						s.lose()
					}
					ctx = t.Context()
					n = s.New(t, clock, nil)
					if how.lost { // of what is over already nobody looks for a ticket
						told(t, n, resolved(p, time.Time{}))
					}
					told(t, n, p)
				}
				is := s.only(t)
				var marks []string
				for _, text := range said(is) {
					marks = append(marks, text[strings.LastIndex(text, "unpend "):])
				}
				want := []string{"unpend 24ac8de5f00d running\n", "unpend 24ac8de5f00d succeeded\n", fmt.Sprintf("unpend over %d\n", at(8).Unix())}
				if diff := cmp.Diff(want, marks); diff != "" || len(is.Links) != 1 || is.Status != "Done" || !strings.Contains(is.Shown(), "done in 4m12s") {
					t.Errorf("write %d, %+v: %s, %d links, %s", nth, how, is.Status, len(is.Links), diff)
				}
				cancel()
			}
			if !struck {
				break
			}
			killed += 3
		}
		if killed < 24 {
			t.Errorf("%d kills", killed)
		}
		fmt.Printf("R5 %d/%d, kills at a write to Jira (%s): each time 1 ticket, 1 comment a transition, 1 link\n", killed, killed, d)
	})
}

// That somebody has snoozed the message in Slack is a comment, once, no matter who goes on; a snooze
// that begins again is another, and one that is decided over is none.
func TestSnoozedInSlack(t *testing.T) {
	both(t, func(t *testing.T, d string) {
		clock := notifytest.NewClock()
		s := newSite(t, clock, d)
		n := s.New(t, clock, slog.New(slog.DiscardHandler))
		snoozed := func(p notice.Proposal, minute int) notice.Proposal {
			p.Snoozed = &notice.Snoozed{By: "ada@example.com", At: at(minute), Until: at(minute).Add(time.Hour)}
			return p
		}
		told(t, n, offer(), snoozed(offer(), 5), snoozed(offer(), 5), offer())
		n = s.New(t, clock, slog.New(slog.DiscardHandler)) // a restart
		told(t, n, snoozed(offer(), 5), snoozed(offer(), 30), snoozed(withPlan(notice.Running, nil), 40))
		comment := func(minute, until string, of time.Time) string {
			return fmt.Sprintf("2026-11-22 %s UTC  snoozed in Slack by ada@example.com until 2026-11-22 %s UTC\n\nunpend snoozed %d\n", minute, until, of.Add(time.Hour).Unix())
		}
		want := []string{comment("14:05", "15:05", at(5)), comment("14:30", "15:30", at(30))}
		got := said(s.only(t))
		if len(got) != 3 || !strings.Contains(got[2], "approved by ada") {
			t.Errorf("%q", got)
		} else if diff := cmp.Diff(want, got[:2]); diff != "" {
			t.Error(diff)
		}
	})
}
