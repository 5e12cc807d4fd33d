package slack

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/slack/slacktest"
)

// clock is one that is moved by who waits.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	pauses []time.Duration
}

func (c *clock) get() knowledge.Clock {
	return knowledge.Clock{Now: func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now
	}, Sleep: func(ctx context.Context, d time.Duration) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now, c.pauses = c.now.Add(d), append(c.pauses, d)
		return ctx.Err()
	}}
}

const root = 1790000000 // when it all begins

func ts(second int) string { return fmt.Sprintf("%d.000100", root+second) }

func says(second int, user, text string, more ...string) slacktest.Message {
	m := slacktest.Message{"ts": ts(second), "user": user, "text": text}
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

func replies(second, to int, user, text string) slacktest.Message {
	return says(second, user, text, "thread_ts", ts(to))
}

type world struct {
	*slacktest.Server
	clock   *clock
	library *knowledge.Library
	says    []string
	opts    APIOptions
}

func newWorld(t *testing.T, channels ...slacktest.Channel) *world {
	t.Helper()
	w := &world{Server: slacktest.New(channels...), clock: &clock{now: time.Unix(root+3600, 0)}, library: library(t)}
	t.Cleanup(func() {
		if c := w.Complaints(); len(c) > 0 {
			t.Errorf("Slack does not document it: %s", c)
		}
		w.Close()
	})
	w.opts = APIOptions{Token: slacktest.Token, URL: w.URL(), Clock: w.clock.get(), AllPublic: true, Say: func(s string) { w.says = append(w.says, s) }}
	return w
}

func (w *world) read(t *testing.T) (knowledge.Import, error) {
	t.Helper()
	a, err := NewAPI(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	done, err := w.library.Import(t.Context(), a, "slack", "the API", time.Time{})
	return done, err
}

func (w *world) reads(t *testing.T, want knowledge.Import) {
	t.Helper()
	done, err := w.read(t)
	if err != nil {
		t.Fatal(err)
	}
	done.Source, done.From, done.At = "", "", time.Time{}
	if len(done.Skipped) == 0 {
		done.Skipped = nil
	}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
}

var help = slacktest.Channel{ID: "C1", Name: "gpu-help", Created: root - 100}

// All that goes wrong in one workspace.
func TestAPI(t *testing.T) {
	w := newWorld(t, help, slacktest.Channel{ID: "C2", Name: "elsewhere", Outside: true}, slacktest.Channel{ID: "G1", Name: "gpu-secret", Private: true}, slacktest.Channel{ID: "G2", Name: "gpu-oncall", Private: true, Created: root})
	w.opts.Private = []string{"#gpu-oncall"}
	w.Say("C1", says(0, "U1", "<@U2|ada> job waits for nvidia.com/mig-2g.10gb\n\n&amp; <!here>"), replies(100, 0, "U2", "relabel the node, fixed"),
		says(1, "U9", "has joined", "subtype", "channel_join"),
		says(2, "", "FIRING: GPU", "subtype", "bot_message", "bot_id", "B1"), says(3, "", "FIRING", "thread_ts", ts(2), "bot_id", "B1"),
		says(4, "U1", strings.Repeat("x", 5<<20)),
		says(5, "U0UNPEND", "2 pods wait for nvidia.com/mig-7g.80gb", "bot_id", "B0UNPEND"), replies(6, 5, "U1", "thanks"),
		says(7, "", "who was that? Xid 79"), // of a user who is deleted for good
		says(101, "U2", "relabel the node, fixed", "thread_ts", ts(0), "subtype", "thread_broadcast"))
	w.Say("G2", says(0, "U1", "Xid 13 on node-7"))
	w.Say("G1", says(0, "U1", "layoffs of GPUs"))
	w.reads(t, knowledge.Import{Added: 3, Skipped: map[string]int{
		"a private channel that was not named":                    1,
		"a public channel that the app is not in":                 1,
		"a notice of a join, a topic, a pin or a deleted message": 1,
		"a thread in which only bots speak":                       1,
		"a message of more than 64 KiB":                           1,
		"a message of unpend itself":                              1,
	}})
	want := knowledge.Hit{Source: "slack", Title: "@U2 job waits for nvidia.com/mig-2g.10gb", URL: "https://acme.slack.com/archives/C1/p1790000000000100", Who: "U1", Where: "#gpu-help", Part: "C1",
		At: time.Unix(root, 0).UTC(), Quote: "@U2 job waits for nvidia.com/mig-2g.10gb\n& @here"}
	hits := search(t, w.library, "nvidia.com/mig-2g.10gb")
	if len(hits) != 1 {
		t.Fatalf("found %+v", hits)
	}
	hits[0].Score = 0
	if diff := cmp.Diff(want, hits[0]); diff != "" {
		t.Error(diff)
	}
	for words, n := range map[string]int{"Xid 79": 1, "Xid 13": 1, "layoffs": 0, "nvidia.com/mig-7g.80gb": 0, "joined": 0} {
		if hits := search(t, w.library, words); len(hits) != n {
			t.Errorf("%s: found %+v", words, hits)
		}
	}
}
