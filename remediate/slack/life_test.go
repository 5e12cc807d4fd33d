package slack_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/slack"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
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

// One message lives through an incident: it is posted with its buttons, then edited as the
// plan goes on, and what has happened stays in the thread.
func TestLifeOfAMessage(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	n := w.New(t, clock, slog.New(slog.DiscardHandler))
	over := withPlan(notice.Succeeded, func(n *notice.Notice) { n.Since, n.Reason = at(7).Add(12*time.Second), "ml/training-0 runs" })
	over.Resolved = at(8)
	for _, step := range []struct {
		p       notice.Proposal
		says    []string
		buttons bool
		thread  int
	}{
		{offer(), []string{"stops ml/web-1, ml/web-2", "[Approve #1] danger: Approve fix 1? repartition gpu-1/GPU 0 to \"all-2g.10gb\". Stops ml/web-1, ml/web-2. 1 of 1 pod runs · stops 2 pods · takes ~4 min · risk low. Plan 24ac8de5f00d\n"}, true, 1},
		{withPlan(notice.Pending, func(n *notice.Notice) { n.Approvers, n.Began = nil, time.Time{} }), []string{"plan 24ac8de5f00d is recorded, and nobody has decided"}, true, 2},
		{withPlan(notice.Running, func(n *notice.Notice) { n.Progress, n.Step = "2/9", "evict ml/web-1" }), []string{"approved by ada → step 2/9: evict ml/web-1"}, false, 3},
		{withPlan(notice.Running, func(n *notice.Notice) { n.Progress, n.Step, n.Since = "3/9", "evict ml/web-2", at(4) }), []string{"approved by ada → step 3/9: evict ml/web-2"}, false, 3},
		{withPlan(notice.Succeeded, func(n *notice.Notice) { n.Since, n.Reason = at(7).Add(12*time.Second), "ml/training-0 runs" }), []string{"approved by ada → done in 4m12s: repartition gpu-1/GPU 0\nml/training-0 runs"}, false, 4},
		{over, []string{"✔ Resolved: ml/training waits", "Nobody of it waits any more since 2026-11-22 14:08 UTC"}, false, 4},
	} {
		told(t, n, step.p, step.p)
		all := w.Server.Messages("")
		if len(all) != 1 {
			t.Fatalf("%d messages", len(all))
		}
		shown := all[0].Shown()
		for _, s := range step.says {
			if !strings.Contains(shown, s) {
				t.Errorf("%q is not in:\n%s", s, shown)
			}
		}
		if got := strings.Contains(shown, "[Approve"); got != step.buttons || strings.Contains(shown, "[Snooze") != step.buttons {
			t.Errorf("buttons: %v, want %v:\n%s", got, step.buttons, shown)
		}
		if thread := w.Server.Messages(all[0].TS); len(thread) != step.thread {
			t.Errorf("%d replies, want %d: %+v", len(thread), step.thread, thread)
		}
	}
	all := w.Server.Messages("")
	if all[0].Edits != 5 {
		t.Errorf("%d edits", all[0].Edits)
	}
	var thread []string
	for _, m := range w.Server.Messages(all[0].TS)[1:] {
		if thread = append(thread, m.Text); m.Edits != 0 {
			t.Errorf("history was edited: %s", m.Shown())
		}
	}
	if got := strings.Join(thread, ", "); got != "plan 24ac8de5f00d: pending, plan 24ac8de5f00d: running, plan 24ac8de5f00d: succeeded" {
		t.Errorf("the thread says %s", got)
	}
}

// Nothing is offered that would be refused now, that helps nobody, or where nobody hears
// clicks.
func TestWhatIsNotOffered(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*diagnosis.FixSummary)
		buttons bool
		want    string
	}{
		"the breaker is open": {func(f *diagnosis.FixSummary) { f.Held = "the breaker is open" }, true, "[Snooze 1 h]\nprod"},
		"by hand":             {func(f *diagnosis.FixSummary) { f.Automatic = false }, true, "[Snooze 1 h]\nprod"},
		"musical chairs":      {func(f *diagnosis.FixSummary) { f.Class = diagnosis.MusicalChair }, true, "[Snooze 1 h]\nprod"},
		"nobody hears clicks": {func(*diagnosis.FixSummary) {}, false, "accept gpu-1\nprod"},
		"what is no plan":     {func(f *diagnosis.FixSummary) { f.Plan = "v1" }, true, "[Snooze 1 h]\nprod"},
	} {
		clock := notifytest.NewClock()
		w := newWorkspace(t, clock)
		p := offer()
		tc.change(&p.Finding.Fixes[0])
		told(t, w.slack(t, clock, nil, "prod", tc.buttons), p)
		if got := w.Server.Messages("")[0].Shown(); !strings.Contains(got, tc.want) || strings.Contains(got, "[Approve") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// What was kept is lost, or a person deletes a message: what is there is found again, what
// is not is posted again, and another cluster's is left alone.
func TestFoundAgain(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	told(t, w.slack(t, clock, nil, "staging", true), offer())
	if err := clock.Sleep(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	n := w.New(t, clock, nil)
	told(t, n, offer())
	before := w.Server.Messages("")
	if len(before) != 2 {
		t.Fatalf("%d messages of two clusters", len(before))
	}
	clear(w.kept)
	told(t, w.New(t, clock, nil), withPlan(notice.Running, nil))
	all := w.Server.Messages("")
	if len(all) != 2 || all[1].TS != before[1].TS || all[1].Edits != 1 || all[0].Edits != 0 || len(w.Server.Messages(all[1].TS)) != 2 {
		t.Errorf("what was kept is lost: %+v", all)
	}
	reply := w.Server.Messages(all[1].TS)[0]
	w.Delete(reply.TS)
	p := offer()
	p.Finding.Unread = []string{"ClusterPolicy: forbidden"}
	told(t, w.New(t, clock, nil), p)
	if all := w.Server.Messages(""); len(all) != 2 || len(w.Server.Messages(all[1].TS)) != 2 {
		t.Errorf("a reply was deleted: %+v", all)
	}
	w.Delete(all[1].TS)
	told(t, w.New(t, clock, nil), withPlan(notice.Succeeded, nil))
	after := w.Server.Messages("")
	if len(after) != 2 || after[1].TS == all[1].TS || len(w.Server.Messages(after[1].TS)) != 2 {
		t.Errorf("the message was deleted: %+v", after)
	}
}

// Eleven incidents in five minutes are a storm: the eleventh and those after it share one
// message, without a button, until it is over.
func TestStormIsOneDigest(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	of := func(i int) notice.Proposal {
		p := offer()
		p.Incident = fmt.Sprintf("gpu-%010x", i)
		p.Finding.Incident, p.Finding.Headline = p.Incident, fmt.Sprint("workload ", i, " waits <!here>")
		return p
	}
	n := w.New(t, clock, nil)
	for i := range 40 {
		told(t, n, of(i), of(i))
	}
	all := w.Server.Messages("")
	if len(all) != 11 {
		t.Fatalf("%d messages", len(all))
	}
	storm := all[10].Shown()
	for _, want := range []string{"Storm: 30 of 30 workloads wait\n• 30 × MIGLayoutMismatch\n", "gpu-000000000a  workload 10 waits <!here>\n", "and 10 more: kubectl unpend incidents -A\n"} {
		if !strings.Contains(storm, want) {
			t.Errorf("%q is not in:\n%s", want, storm)
		}
	}
	if strings.Contains(storm, "[") || len(w.Server.Messages(all[10].TS)) != 0 {
		t.Errorf("in a storm nothing is offered: %s", storm)
	}
	n = w.New(t, clock, nil) // a restart
	for i := range 40 {
		p := of(i)
		p.Resolved = at(30)
		told(t, n, p)
	}
	all = w.Server.Messages("")
	if got := all[10].Shown(); len(all) != 11 || !strings.HasPrefix(got, "✔ Resolved: a storm of 30 workloads is over\n") {
		t.Errorf("%d messages, the last:\n%s", len(all), got)
	}
	if err := clock.Sleep(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	told(t, n, of(99))
	if all := w.Server.Messages(""); len(all) != 12 || !strings.Contains(all[11].Shown(), "workload 99") {
		t.Errorf("after the storm: %d messages", len(all))
	}
}

// An incident that nobody was told of, and of which nothing is known but that it is over, is
// none.
func TestNothingToTell(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	told(t, w.New(t, clock, nil), notice.Proposal{Incident: incidentID, Resolved: at(1)})
	if w.Writes() != 0 {
		t.Errorf("%d writes", w.Writes())
	}
}

// What waits again after it was over is another message: people do not look at the old one.
// What was over before anybody was told is none, unless somebody has to come.
func TestWaitsAgain(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	n := w.New(t, clock, nil)
	over := offer()
	over.Resolved = at(8)
	told(t, n, over)
	if w.Writes() != 0 {
		t.Errorf("%d writes about what is over", w.Writes())
	}
	told(t, n, offer(), over)
	again := offer()
	again.Finding.Pods.Since = at(20)
	told(t, n, again)
	if all := w.Server.Messages(""); len(all) != 2 || !strings.HasPrefix(all[0].Shown(), "✔ Resolved: ") || strings.HasPrefix(all[1].Shown(), "✔") || all[1].Edits != 0 {
		t.Errorf("%+v", all)
	}
	parked := withPlan(notice.Parked, nil)
	parked.Incident, parked.Resolved = "gpu-fedcba9876", at(8)
	told(t, n, parked)
	if all := w.Server.Messages(""); len(all) != 3 || !strings.Contains(all[2].Shown(), "left its node cordoned, on purpose: somebody has to come: repartition gpu-1/GPU 0\nkubectl unpend release gpu-1\n") {
		t.Errorf("%s", all[len(all)-1].Shown())
	}
}

// What an operator has to mend is said with where.
func TestRemedies(t *testing.T) {
	for name, want := range map[string]string{
		"not_in_channel":    "post a message: Slack says not_in_channel: the app is not in slack.channel: say /invite @unpend there",
		"token_revoked":     "post a message: Slack says token_revoked: the bot token in slack.tokenFile was revoked: install the app again and write its token there",
		"channel_not_found": "post a message: Slack says channel_not_found: slack.channel names no channel that the app sees: write its id (C…), and invite the app if it is private",
		"invalid_blocks":    "refused: post a message: Slack says invalid_blocks",
		"something_new":     "post a message: Slack says something_new",
	} {
		clock := notifytest.NewClock()
		w := newWorkspace(t, clock)
		w.Server.Fail(fakeslack.Soft(name))
		err := w.New(t, clock, nil).Notify(t.Context(), offer())
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A Slack that nobody could speak to is refused before anything is said.
func TestNew(t *testing.T) {
	for want, o := range map[string]slack.Options{"slack: there is no bot token": {Channel: "C"}, "slack: there is no channel": {Token: "x"}, "slack: there is nowhere to keep what was posted": {Token: "x", Channel: "C"}} {
		if _, err := slack.New(o); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
