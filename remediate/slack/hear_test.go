package slack_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	plans "github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/slack"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
)

// ledger is a desk that notes what it is asked for. eve is in the workspace, and nobody's user.
type ledger struct {
	mu    sync.Mutex
	asked []string
	fails error
}

func (l *ledger) note(what string, who plans.Caller, more ...string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if who.Via != plans.ViaSlack || who.ID == eve.ID {
		return "", fmt.Errorf("%w: %s is nobody", plans.ErrRefused, who)
	}
	l.asked = append(l.asked, what+" by "+who.ID+": "+strings.Join(more, " "))
	return what + " <!channel> & so", l.fails
}

func (l *ledger) Approve(_ context.Context, who plans.Caller, incident, plan string) (string, error) {
	return l.note("approve", who, incident, plan)
}

func (l *ledger) Reject(_ context.Context, who plans.Caller, incident, plan string) (string, error) {
	return l.note("reject", who, incident, plan)
}

func (l *ledger) DryRun(_ context.Context, who plans.Caller, incident, plan string) (string, error) {
	return l.note("dry run", who, incident, plan)
}

func (l *ledger) Why(_ context.Context, who plans.Caller, pod, namespace string) (string, error) {
	return l.note("why", who, pod, namespace)
}

func (l *ledger) Known(who plans.Caller) (string, error) {
	_, err := l.note("known", who)
	return "ada@example.com", err
}

func (l *ledger) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}

var (
	ada   = fakeslack.User{ID: "U0ADA", Team: fakeslack.Team}
	eve   = fakeslack.User{ID: "U0EVE", Team: fakeslack.Team}
	guest = fakeslack.User{ID: "U0GUEST", Team: fakeslack.Team, Guest: true}
	other = fakeslack.User{ID: "U0OTHER", Team: "T0OTHER"}
)

// heard is a listener that hears by Socket Mode, and the desk that it asks.
type heard struct {
	*workspace
	*ledger
	log *strings.Builder
}

func (h *heard) options(c notice.Clock) slack.HearOptions {
	return slack.HearOptions{Token: fakeslack.Token, AppToken: fakeslack.AppToken, Channels: []string{fakeslack.Channel}, Desk: h.ledger, URL: h.URL(), Clock: c, Logger: slog.New(slog.NewTextHandler(h.log, nil)),
		Load: h.load,
		Save: func(_ context.Context, key string, value []byte) error {
			h.workspace.mu.Lock()
			defer h.workspace.mu.Unlock()
			h.kept["prod"+key] = value
			return nil
		}}
}

func (h *heard) load(_ context.Context, key string) ([]byte, error) {
	h.workspace.mu.Lock()
	defer h.workspace.mu.Unlock()
	return h.kept["prod"+key], nil
}

// listens has a listener run until the test ends.
func listens(t *testing.T, c *notifytest.Clock) *heard {
	t.Helper()
	return listensIn(t, c, fakeslack.Channel, nil)
}

// listensIn has its buttons in that channel, and something to search.
func listensIn(t *testing.T, c *notifytest.Clock, channel string, search func(ctx context.Context, channel, text string) (string, error)) *heard {
	t.Helper()
	h := &heard{newWorkspace(t, c), &ledger{}, &strings.Builder{}}
	h.Join(ada, eve, guest, other)
	o := h.options(notice.Clock{Now: c.Now, Sleep: c.Sleep})
	o.Channels, o.Search = []string{channel}, search
	l, err := slack.NewListener(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, secret := range []string{fakeslack.Token, fakeslack.AppToken} {
			if strings.Contains(h.log.String(), secret) {
				t.Error("its log has a token")
			}
		}
	})
	until(t, "two connections are open", func() bool { return h.Lines() == 2 })
	return h
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !is(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("not in a minute: " + what)
		}
	}
}

// answered waits for so many answers, and gives the last.
func (h *heard) answered(t *testing.T, n int) fakeslack.Whisper {
	t.Helper()
	until(t, fmt.Sprint(n, " answers"), func() bool { return len(h.Whispers()) >= n })
	all := h.Whispers()
	if len(all) != n {
		t.Fatalf("%d answers, want %d: %+v", len(all), n, all)
	}
	return all[n-1]
}

// What somebody clicks is decided as who they are, and they alone are answered; who is not of
// the workspace, a guest, or nobody's user is told so, and nothing is decided.
func TestClicks(t *testing.T) {
	clock := notifytest.NewClock()
	h := listens(t, clock)
	told(t, h.New(t, clock, nil), offer())
	m := h.Server.Messages("")[0]
	n := 0
	for _, tc := range []struct {
		who    fakeslack.User
		action string
		desk   string // what it is asked for
		says   string
	}{
		{ada, slack.ActApprove, "approve by U0ADA: " + incidentID + " " + plan, "approve &lt;!channel&gt; &amp; so"},
		{ada, slack.ActDryRun, "dry run by U0ADA: " + incidentID + " " + plan, "dry run &lt;!channel&gt; &amp; so"},
		{ada, slack.ActNotThis, "reject by U0ADA: " + incidentID + " " + plan, "reject &lt;!channel&gt; &amp; so"},
		{eve, slack.ActApprove, "", "Nothing was done: refused: slack U0EVE is nobody"},
		{eve, slack.ActSnooze, "", "Nothing was done: refused: slack U0EVE is nobody"},
		{guest, slack.ActApprove, "", "Nothing was done: refused: guests and bots decide nothing"},
		{other, slack.ActApprove, "", "Nothing was done: refused: you are of another workspace"},
		{fakeslack.User{ID: "U0NEW", Team: fakeslack.Team}, slack.ActApprove, "", "Nothing was done: refused: Slack does not say who you are: user_not_found"},
		{fakeslack.User{ID: "U0OTHER", Team: fakeslack.Team}, slack.ActApprove, "", "Nothing was done: refused: you are of another workspace"},
	} {
		before := len(h.all())
		if err := h.Click(tc.who, m, tc.action); err != nil {
			t.Fatal(err)
		}
		n++
		if got := h.answered(t, n); got != (fakeslack.Whisper{Channel: fakeslack.Channel, User: tc.who.ID, Text: tc.says}) {
			t.Errorf("%s, %s: %+v", tc.who.ID, tc.action, got)
		}
		if got := strings.Join(h.all()[before:], ", "); got != tc.desk {
			t.Errorf("%s, %s: the desk is asked %q, want %q", tc.who.ID, tc.action, got, tc.desk)
		}
	}
	before := h.all()
	for _, value := range []string{"", "v1", "v1::", "v2:" + plan + ":" + incidentID, "v1:" + plan[1:] + ":" + incidentID, "v1:" + plan + ":gpu-x", "v1::" + incidentID, "v1:" + plan + ":" + incidentID + ":x", strings.Repeat("x", 2000)} {
		if err := h.Send("interactive", fakeslack.Clicked(ada, fakeslack.Channel, m.TS, slack.ActApprove, value)); err != nil {
			t.Fatal(err)
		}
		n++
		if got := h.answered(t, n); !strings.HasPrefix(got.Text, "Nothing was done: refused: the button ") {
			t.Errorf("%.20q: %+v", value, got)
		}
	}
	if err := h.Send("interactive", fakeslack.Clicked(ada, "C0ELSE", m.TS, slack.ActApprove, "v1:"+plan+":"+incidentID)); err != nil {
		t.Fatal(err)
	}
	if err := h.Send("interactive", fakeslack.Clicked(ada, fakeslack.Channel, m.TS, "delete_everything", "v1:"+plan+":"+incidentID)); err != nil {
		t.Fatal(err)
	}
	if got := h.answered(t, n+1); !strings.Contains(got.Text, `"delete_everything" is no button of this version`) {
		t.Errorf("%+v", got)
	}
	h.ledger.mu.Lock()
	h.fails = errors.New("the API server is away")
	h.ledger.mu.Unlock()
	if diff := cmp.Diff(before, h.all()); diff != "" {
		t.Errorf("the desk was asked: %s", diff)
	}
	if err := h.Click(ada, m, slack.ActApprove); err != nil {
		t.Fatal(err)
	}
	if got := h.answered(t, n+2); strings.Contains(got.Text, "API server") || !strings.HasPrefix(got.Text, "That did not work") {
		t.Errorf("%+v", got)
	}
}

// Who asks why is answered alone, once however often Slack sends it; what is no name of a pod
// goes no further.
func TestQuestions(t *testing.T) {
	h := listens(t, notifytest.NewClock())
	n := 0
	for text, want := range map[string]string{
		"why pod/training-0 -n ml":            "why by U0ADA: training-0 ml",
		"why pod/training-0":                  "why by U0ADA: training-0 ",
		"why training-0 --namespace ml":       "why by U0ADA: training-0 ml",
		"why job/training":                    "",
		"":                                    "",
		"help":                                "",
		"why pod/../x":                        "",
		"why pod/<!channel>":                  "",
		"why pod/x -n ml;rm":                  "",
		"why pod/x -A":                        "",
		"why pod/" + strings.Repeat("x", 700): "",
	} {
		before := len(h.all())
		if err := h.Ask(ada, text); err != nil {
			t.Fatal(err)
		}
		n++
		says := h.answered(t, n)
		if got := strings.Join(h.all()[before:], ", "); got != want || says.User != "U0ADA" || (want == "") != strings.HasPrefix(says.Text, "Nothing was done: refused: ") {
			t.Errorf("%q: the desk is asked %q, and says %+v", text, got, says)
		}
	}
	if err := h.Mention(ada, "why pod/training-0 -n ml", 3); err != nil {
		t.Fatal(err)
	}
	n++
	if says := h.answered(t, n); says.Channel != fakeslack.Channel || says.User != "U0ADA" || says.Text != "why &lt;!channel&gt; &amp; so" {
		t.Errorf("%+v", says)
	}
	if err := h.Ask(guest, "why pod/training-0 -n ml"); err != nil {
		t.Fatal(err)
	}
	if says := h.answered(t, n+1); says.Text != "Nothing was done: refused: guests and bots decide nothing" {
		t.Errorf("%+v", says)
	}
}

// A message that somebody has snoozed says so, and is then left alone, whatever is found and
// whichever process is asked; a plan that is decided on is told all the same, and afterwards
// what is true then.
func TestSnooze(t *testing.T) {
	clock := notifytest.NewClock()
	h := listens(t, clock)
	n := h.slack(t, clock, nil, "prod", true)
	told(t, n, offer())
	snoozed := func(p notice.Proposal) notice.Proposal { // as the service has it
		all, err := slack.Snoozes(t.Context(), h.load)
		if err != nil {
			t.Fatal(err)
		}
		if z, is := all[incidentID]; is && clock.Now().Before(z.Until) {
			p.Snoozed = &z
		}
		return p
	}
	if err := h.Click(ada, h.Server.Messages("")[0], slack.ActSnooze); err != nil {
		t.Fatal(err)
	}
	if got := h.answered(t, 1); !strings.HasPrefix(got.Text, "The message of "+incidentID+" is left alone until ") {
		t.Errorf("%+v", got)
	}
	told(t, n, snoozed(offer()))
	m := h.Server.Messages("")[0]
	if shown := m.Shown(); !strings.Contains(shown, "snoozed by ada@example.com until ") || strings.Contains(shown, "[Snooze") || !strings.Contains(shown, "[Approve #1]") {
		t.Errorf("%s", shown)
	}
	if err := clock.Sleep(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	again := h.slack(t, clock, nil, "prod", true) // a restart
	news := offer()
	news.Finding.Headline = "something else"
	told(t, again, snoozed(news), snoozed(offer()), snoozed(news))
	if now := h.Server.Messages("")[0]; now.Edits != m.Edits {
		t.Errorf("it was edited %d times:\n%s", now.Edits-m.Edits, now.Shown())
	}
	told(t, again, snoozed(withPlan(notice.Running, nil)))
	if shown := h.Server.Messages("")[0].Shown(); strings.Contains(shown, "snoozed") || !strings.Contains(shown, "approved by ada") {
		t.Errorf("%s", shown)
	}
	if err := clock.Sleep(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	told(t, again, snoozed(news))
	if shown := h.Server.Messages("")[0].Shown(); !strings.Contains(shown, "something else") || !strings.Contains(shown, "[Snooze 1 h]") || strings.Contains(shown, "snoozed") {
		t.Errorf("%s", shown)
	}
}

// Once somebody has said "not this", the next fix is the one that is offered.
func TestNotThisOffersTheNext(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	p := withPlan(notice.Rejected, func(n *notice.Notice) { n.Reason, n.Approvers = "bob said no", nil })
	second := p.Finding.Fixes[0]
	second.ID, second.Plan, second.Title = 2, strings.Repeat("1", 64), "evict ml/web-1"
	p.Finding.Fixes = append(p.Finding.Fixes, second)
	told(t, w.slack(t, clock, nil, "prod", true), p)
	m := w.Server.Messages("")[0]
	if shown := m.Shown(); !strings.Contains(shown, "[Approve #2]") || strings.Contains(shown, "[Approve #1]") || m.Value(slack.ActNotThis) != "v1:"+second.Plan+":"+incidentID || !strings.Contains(shown, "approve "+incidentID+"#2") {
		t.Errorf("%s", shown)
	}
}

// A listener that could hear nobody is refused before anything is said.
func TestNewListener(t *testing.T) {
	for want, change := range map[string]func(*slack.HearOptions){
		"slack: there is no bot token":     func(o *slack.HearOptions) { o.Token = "" },
		"slack: there is no channel":       func(o *slack.HearOptions) { o.Channels = nil },
		"slack: there is nobody to decide": func(o *slack.HearOptions) { o.Desk = nil },
		"slack: clicks come by Socket Mode (an app token) or by HTTP (a signing secret): give one of them": func(o *slack.HearOptions) { o.AppToken = "" },
	} {
		o := slack.HearOptions{Token: "x", AppToken: "x", Channels: []string{"C"}, Desk: &ledger{}}
		change(&o)
		if _, err := slack.NewListener(o); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
