package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack/slackevents"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/slack/slacktest"
)

// A second reading asks for what is recent alone, and for answers where there are new ones;
// what was edited, deleted or renamed is so here.
func TestAPIReadsWhatIsNew(t *testing.T) {
	w := newWorld(t, help)
	for n := range 450 {
		w.Say("C1", says(n*10, "U1", fmt.Sprintf("Xid %d on node-%d", n, n)))
	}
	w.Say("C1", replies(5, 0, "U2", "reset it"), replies(4481, 4480, "U2", "reset it"))
	w.clock.now = time.Unix(root+5000, 0)
	w.reads(t, knowledge.Import{Added: 450})
	if n := w.Calls("conversations.history"); n != 3 {
		t.Errorf("%d pages of 200", n)
	}
	if n := w.Calls("conversations.replies"); n != 2 {
		t.Errorf("%d threads were asked for", n)
	}
	if diff := cmp.Diff([]string{"Slack lets this app read 50 pages a minute (Tier 3)"}, w.says); diff != "" {
		t.Error(diff)
	}
	w.clock.now = w.clock.now.Add(DefaultRecent - time.Hour)
	w.Delete("C1", ts(10)) // longer ago than what is recent
	w.Delete("C1", ts(4400))
	w.Say("C1", says(4410, "U1", "Xid 9999 on node-441", "edited", "later"), replies(4500, 4470, "U2", "fixed"), says(9000, "U1", "Xid 999"))
	m := says(4410, "U1", "Xid 9999 on node-441")
	m["edited"] = map[string]any{"user": "U1", "ts": ts(4600)}
	w.Say("C1", m)
	w.Set(slacktest.Channel{ID: "C1", Name: "gpus", Created: root - 100})
	w.reads(t, knowledge.Import{Added: 1, Changed: 450 + 2, Removed: 1, Same: 310 - 3}) // renamed, all of them
	if n := w.Calls("conversations.replies") - 2; n != 1 {
		t.Errorf("%d threads were asked for, want the one with a new answer", n)
	}
	if hits := search(t, w.library, "Xid 9999"); len(hits) != 1 || hits[0].Where != "#gpus" {
		t.Errorf("found %+v", hits)
	}
	for words, n := range map[string]int{"Xid 440": 0, "Xid 441": 0, "Xid 1": 1, "Xid 999": 1} {
		if hits := search(t, w.library, words); len(hits) != n {
			t.Errorf("%s: found %+v", words, hits)
		}
	}
}

// An app that Slack limits reads 15 messages a minute, all of them, and says why it takes so
// long.
func TestAPIWithinTheLimitsOfDistributedApps(t *testing.T) {
	w := newWorld(t, help)
	w.Most = 15
	for n := range 40 {
		w.Say("C1", says(n, "U1", fmt.Sprintf("Xid %d", n)))
	}
	began := w.clock.now
	w.reads(t, knowledge.Import{Added: 40})
	if took := w.clock.now.Sub(began); took < 2*time.Minute-time.Second || took > 3*time.Minute {
		t.Errorf("three pages took %s", took)
	}
	if len(w.says) != 1 || !strings.Contains(w.says[0], "15 messages a minute") || !strings.Contains(w.says[0], "internal app") {
		t.Errorf("it says %q", w.says)
	}
}

// Who watches sees how many threads were read, and how much of all that is: never less than
// before, and all of it in the end.
func TestAPIIsWatched(t *testing.T) {
	w := newWorld(t, help, slacktest.Channel{ID: "C3", Name: "lunch", Created: root - 100})
	for n := range 450 {
		w.Say("C1", says(n*7, "U1", fmt.Sprintf("Xid %d", n)))
	}
	w.Say("C3", says(0, "U1", "soup"))
	var threads []int
	var shares []float64
	w.opts.Watch = func(n int, share float64) { threads, shares = append(threads, n), append(shares, share) }
	w.reads(t, knowledge.Import{Added: 451})
	if diff := cmp.Diff([]int{200, 400, 450, 451}, threads); diff != "" {
		t.Error(diff)
	}
	if !slices.IsSorted(shares) || shares[0] <= 0 || shares[2] != 0.5 || shares[3] != 1 {
		t.Errorf("of all that is, %v", shares)
	}
}

// What passes by itself is waited for as Slack asks, what does not is told with its remedy and
// without the token.
func TestAPIErrors(t *testing.T) {
	text := func(code int, header, body string) func(http.ResponseWriter, string, *http.Request) bool {
		return func(w http.ResponseWriter, method string, _ *http.Request) bool {
			if method != "conversations.history" {
				return false
			}
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(code)
			fmt.Fprint(w, body)
			return true
		}
	}
	for name, c := range map[string]struct {
		before func(http.ResponseWriter, string, *http.Request) bool
		want   string // an error; empty: it passes after the pause
		pause  time.Duration
	}{
		"429":           {text(429, "37", ""), "", 37 * time.Second},
		"429 silent":    {text(429, "", ""), "", 0},
		"503":           {text(503, "", "<html>"), "", 0},
		"503 with hint": {text(503, "61", ""), "", 61 * time.Second},
		"ratelimited":   {text(200, "", `{"ok":false,"error":"ratelimited"}`), "", 0},
		"missing scope": {text(200, "", `{"ok":false,"error":"missing_scope","needed":"channels:history"}`), "read Slack channel C1: read a Slack channel: Slack says missing_scope (needed: channels:history): the app needs the scopes channels:read and channels:history, for private channels also groups:read and groups:history: add them and install it again", 0},
		"revoked":       {text(200, "", `{"ok":false,"error":"token_revoked"}`), "read Slack channel C1: read a Slack channel: Slack says token_revoked: the token was revoked: install the app again and use its new token", 0},
		"no JSON":       {text(200, "", `<html>`), "invalid character", 0},
		"a redirect":    {text(302, "", ""), "302 Found", 0},
		"forbidden":     {text(403, "", ""), "403 Forbidden", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, help)
			w.Say("C1", says(0, "U1", "Xid 79"))
			failed := false
			w.Before = func(rw http.ResponseWriter, method string, r *http.Request) bool {
				if failed && c.want == "" {
					return false
				}
				failed = c.before(rw, method, r)
				return failed
			}
			done, err := w.read(t)
			if c.want == "" {
				if err != nil || done.Added != 1 {
					t.Fatalf("%+v, %v", done, err)
				}
				if c.pause > 0 && !slices.Contains(w.clock.pauses, c.pause) {
					t.Errorf("it waited %v", w.clock.pauses)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), slacktest.Token) {
				t.Errorf("said %v", err)
			}
			if len(w.clock.pauses) > 0 || w.library.Len() != 0 {
				t.Errorf("it waited %v, and %d documents are there", w.clock.pauses, w.library.Len())
			}
		})
	}
}

// What nobody invites the app to, or misspells, is told before anything is read.
func TestAPINamed(t *testing.T) {
	for want, set := range map[string]func(*APIOptions){
		"the app is not in Slack channel #elsewhere (C2): say /invite there":              func(o *APIOptions) { o.Channels = []string{"elsewhere"} },
		"the Slack workspace, as far as the app sees it, has no public channel nowhere":   func(o *APIOptions) { o.Channels = []string{"C1", "nowhere"} },
		"the Slack workspace, as far as the app sees it, has no private channel gpu-help": func(o *APIOptions) { o.Private = []string{"gpu-help"} },
		"": func(o *APIOptions) { o.Channels = []string{"#gpu-help"} },
	} {
		w := newWorld(t, help, slacktest.Channel{ID: "C2", Name: "elsewhere", Outside: true}, slacktest.Channel{ID: "C3", Name: "lunch"})
		w.Say("C1", says(0, "U1", "Xid 79"))
		w.Say("C3", says(0, "U1", "soup"))
		w.opts.AllPublic = false
		set(&w.opts)
		done, err := w.read(t)
		if want == "" {
			if err != nil || done.Added != 1 {
				t.Errorf("%+v, %v", done, err)
			}
			continue
		}
		if err == nil || err.Error() != want || w.library.Len() != 0 {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A channel that is not to be read any more leaves.
func TestAPIOnly(t *testing.T) {
	w := newWorld(t, help, slacktest.Channel{ID: "C3", Name: "lunch"})
	w.Say("C1", says(0, "U1", "Xid 79"))
	w.Say("C3", says(0, "U1", "soup"))
	w.reads(t, knowledge.Import{Added: 2})
	w.opts.AllPublic, w.opts.Only, w.opts.Channels = false, true, []string{"C1"}
	w.reads(t, knowledge.Import{Same: 1, Removed: 1})
	if hits := search(t, w.library, "soup"); len(hits) > 0 {
		t.Errorf("found %+v", hits)
	}
	// Once it may be read again, or was forgotten, it is read from its beginning; who is not let
	// in any more, or does not see a channel, reads the others.
	w.clock.now = w.clock.now.Add(2 * DefaultRecent)
	w.opts.Channels = []string{"C1", "C3", "nowhere"}
	seen := "a channel that was named and that the app does not see"
	w.reads(t, knowledge.Import{Added: 1, Skipped: map[string]int{seen: 1}})
	if n, err := w.library.Forget(t.Context(), "#gpu-help"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	w.reads(t, knowledge.Import{Added: 1, Skipped: map[string]int{seen: 1}})
	w.Set(help, slacktest.Channel{ID: "C3", Name: "lunch", Outside: true})
	w.reads(t, knowledge.Import{Removed: 1, Skipped: map[string]int{seen: 1, "a public channel that the app is not in": 1}})
}

// A process that reads the history and is killed at any moment: another one goes on where it
// was, and in the end each thread is there once. It is this test's binary, run again.
func TestAPIKilled(t *testing.T) {
	if dir := os.Getenv("UNPEND_TEST_LIBRARY"); dir != "" {
		l, err := knowledge.EditLibrary(dir)
		if err != nil {
			t.Fatal(err)
		}
		a, err := NewAPI(APIOptions{Token: slacktest.Token, URL: os.Getenv("UNPEND_TEST_SLACK"), AllPublic: true, Clock: (&clock{now: time.Unix(root+360000, 0)}).get()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Import(t.Context(), a, "slack", "the API", time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	s := slacktest.New(help)
	defer s.Close()
	const threads, pages = 1000, 50
	s.Most = threads / pages
	for n := range threads {
		s.Say("C1", says(n*10, "U1", fmt.Sprintf("Xid %d", n)), replies(n*10+1, n*10, "U2", fmt.Sprintf("reset node-%d", n)))
	}
	dir := t.TempDir()
	// Slack kills who asks for these pages, or for a thread of them.
	asked := make(chan *os.Process, 1)
	kills, calls := []int{3, 260, 700, 1000}, 0
	s.Before = func(http.ResponseWriter, string, *http.Request) bool {
		if calls++; len(kills) > 0 && calls == kills[0] {
			kills = kills[1:]
			p := <-asked
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
		}
		return false
	}
	starts := 0
	for done := false; !done; {
		starts++
		c := exec.Command(os.Args[0], "-test.run=^TestAPIKilled$")
		c.Env = append(os.Environ(), "UNPEND_TEST_LIBRARY="+dir, "UNPEND_TEST_SLACK="+s.URL())
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-asked:
		default:
		}
		asked <- c.Process
		err := c.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != -1) {
			t.Fatal(err)
		}
		done = err == nil
	}
	if starts != 5 {
		t.Errorf("it was started %d times, want 5", starts)
	}
	// Each kill repeats at most the page that it hit; the list and who we are, each start.
	if most := threads + pages + 1 + 5*(2+threads/pages+1); calls > most {
		t.Errorf("%d calls, want at most %d: what was read is read again", calls, most)
	}
	l, err := knowledge.OpenLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Len() != threads {
		t.Errorf("%d threads are there, want %d", l.Len(), threads)
	}
	for _, n := range []int{0, 1, 499, 998, 999} {
		if hits := search(t, l, fmt.Sprintf("Xid %d", n)); len(hits) != 1 || !strings.Contains(hits[0].Title, fmt.Sprintf("Xid %d", n)) {
			t.Errorf("Xid %d: found %+v", n, hits)
		}
	}
}

// event is what Slack sends of what happens in a channel.
func event(t *testing.T, inner map[string]any) slackevents.EventsAPIEvent {
	t.Helper()
	b, err := json.Marshal(map[string]any{"type": "event_callback", "team_id": "T0TEAM", "event_id": "Ev1", "event": inner})
	if err != nil {
		t.Fatal(err)
	}
	e, err := slackevents.ParseEvent(b, slackevents.OptionNoVerifyToken())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The shapes are those of https://docs.slack.dev/reference/events/message and its subtypes.
func TestHeard(t *testing.T) {
	message := func(more ...any) map[string]any {
		out := map[string]any{"type": "message", "channel": "C1", "channel_type": "channel", "event_ts": ts(9), "ts": ts(1), "user": "U1", "text": "Xid 79"}
		for i := 0; i+1 < len(more); i += 2 {
			out[more[i].(string)] = more[i+1] //nolint:forcetypeassert // see its calls
		}
		return out
	}
	inner := map[string]any{"type": "message", "user": "U1", "text": "Xid 79", "ts": ts(2), "thread_ts": ts(1), "edited": map[string]any{"user": "U1", "ts": ts(3)}}
	for name, c := range map[string]struct {
		of   map[string]any
		want News
	}{
		"a message":         {message(), News{"C1", ts(1)}},
		"an answer":         {message("ts", ts(2), "thread_ts", ts(1)), News{"C1", ts(1)}},
		"a private one":     {message("channel_type", "group", "channel", "G1"), News{"G1", ts(1)}},
		"an edit":           {message("subtype", "message_changed", "hidden", true, "ts", ts(9), "message", inner, "previous_message", inner), News{"C1", ts(1)}},
		"a deletion":        {message("subtype", "message_deleted", "hidden", true, "ts", ts(9), "deleted_ts", ts(2), "previous_message", inner), News{"C1", ts(1)}},
		"a bare deletion":   {message("subtype", "message_deleted", "ts", ts(9), "deleted_ts", ts(2)), News{"C1", ts(2)}},
		"a bot":             {message("subtype", "bot_message", "bot_id", "B1"), News{"C1", ts(1)}},
		"a join":            {message("subtype", "channel_join"), News{}},
		"between two":       {message("channel_type", "im", "channel", "D1"), News{}},
		"between three":     {message("channel_type", "mpim", "channel", "G7"), News{}},
		"an odd channel":    {message("channel", "C1.>"), News{}},
		"an odd time":       {message("ts", "noon.*"), News{}},
		"a rename":          {map[string]any{"type": "channel_rename", "channel": map[string]any{"id": "C1", "name": "gpus", "created": 1}}, News{"C1", ""}},
		"an archive":        {map[string]any{"type": "channel_archive", "channel": "C1", "user": "U1"}, News{"C1", ""}},
		"a deleted channel": {map[string]any{"type": "channel_deleted", "channel": "C1"}, News{"C1", ""}},
		"a private rename":  {map[string]any{"type": "group_rename", "channel": map[string]any{"id": "G1", "name": "gpus", "created": 1}}, News{"G1", ""}},
		"a star":            {map[string]any{"type": "app_mention", "channel": "C1", "user": "U1", "text": "x", "ts": ts(1)}, News{}},
	} {
		n, ok := Heard(event(t, c.of))
		if diff := cmp.Diff(c.want, n); ok != (c.want != News{}) || ok && diff != "" {
			t.Errorf("%s: %v %s", name, ok, diff)
		}
	}
}

// Events bring one thread, or one channel, to what it is; and nothing else.
func TestAPIOf(t *testing.T) {
	w := newWorld(t, help, slacktest.Channel{ID: "C3", Name: "lunch", Outside: true})
	w.Say("C1", says(0, "U1", "Xid 79"), says(10, "U1", "Xid 13"))
	w.reads(t, knowledge.Import{Added: 2, Skipped: map[string]int{"a public channel that the app is not in": 1}})
	a, err := NewAPI(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	hears := func(n News, want knowledge.Import) {
		t.Helper()
		done, err := w.library.Import(t.Context(), a.Of(n), "slack", "an event", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		done.Source, done.From = "", ""
		if diff := cmp.Diff(want, done); diff != "" {
			t.Errorf("%+v: %s", n, diff)
		}
	}
	none := map[string]int{}
	w.Say("C1", replies(1, 0, "U2", "reset it, fixed"))
	hears(News{"C1", ts(0)}, knowledge.Import{Changed: 1, Skipped: map[string]int{"a public channel that the app is not in": 1}})
	hears(News{"C1", ts(0)}, knowledge.Import{Same: 1, Skipped: none})
	w.Say("C1", says(20, "U1", "Xid 31"))
	hears(News{"C1", ts(20)}, knowledge.Import{Added: 1, Skipped: none})
	w.Delete("C1", ts(10))
	hears(News{"C1", ts(10)}, knowledge.Import{Removed: 1, Skipped: none})
	hears(News{"C1", ts(10)}, knowledge.Import{Skipped: none})
	hears(News{"C9", ts(10)}, knowledge.Import{Skipped: map[string]int{"a message of a channel that is not read": 1}})
	w.Delete("C1", ts(0)) // its answer stays, below a tombstone
	w.Say("C1", says(0, "USLACKBOT", "This message was deleted.", "subtype", "tombstone"))
	hears(News{"C1", ts(0)}, knowledge.Import{Removed: 1, Skipped: map[string]int{"a notice of a join, a topic, a pin or a deleted message": 1, "a thread whose first message is not there": 1}})
	w.Set(slacktest.Channel{ID: "C1", Name: "gpus"})
	hears(News{"C1", ""}, knowledge.Import{Changed: 1, Skipped: none})
	if hits := search(t, w.library, "Xid 31"); len(hits) != 1 || hits[0].Where != "#gpus" {
		t.Errorf("found %+v", hits)
	}
	// The next reading of all finds nothing that has changed.
	w.reads(t, knowledge.Import{Same: 1, Skipped: map[string]int{"a notice of a join, a topic, a pin or a deleted message": 1, "a thread whose first message is not there": 1}})
	w.Set(slacktest.Channel{ID: "C1", Name: "gpus", Outside: true})
	hears(News{"C1", ""}, knowledge.Import{Removed: 1, Skipped: map[string]int{"a public channel that the app is not in": 1}})
	if w.library.Len() != 0 {
		t.Errorf("%d documents of a channel that the app has left", w.library.Len())
	}
}

// What is said in a private channel is marked so, and marked again when the channel becomes
// another kind, though nothing in it has changed.
func TestPrivateIsMarked(t *testing.T) {
	private := slacktest.Channel{ID: "G1", Name: "oncall", Private: true}
	w := newWorld(t, help, private)
	w.Say("C1", says(0, "U1", "Xid 79"))
	w.Say("G1", says(0, "U1", "Xid 888"))
	w.opts.Private = []string{"oncall"}
	marked := func(want bool) {
		t.Helper()
		for words, private := range map[string]bool{"Xid 79": false, "Xid 888": want} {
			if hits := search(t, w.library, words); len(hits) != 1 || hits[0].Private != private {
				t.Errorf("%s: found %+v", words, hits)
			}
		}
	}
	w.reads(t, knowledge.Import{Added: 2})
	marked(true)
	public := private
	public.Private, w.opts.Private = false, nil
	w.Set(public)
	w.reads(t, knowledge.Import{Changed: 1, Same: 1})
	marked(false)
	w.Set(private)
	w.opts.Private = []string{"oncall"}
	w.reads(t, knowledge.Import{Changed: 1, Same: 1})
	marked(true)
}
