package library

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/knowledge/slack/slacktest"
)

// private is a team that reads a private channel too, and a project that few may be told of.
func private(t *testing.T) *team {
	t.Helper()
	m := newTeam(t)
	m.slack.Say("G1", slacktest.Message{"ts": fmt.Sprintf("%d.000300", time.Now().Unix()), "user": "U1", "text": "Xid 888 on node-3, blame ada"})
	m.config.Slack.PrivateChannels = []string{"gpu-oncall"}
	m.config.Tell = []TellRule{{Of: []string{"gpu-oncall"}, To: []string{"slack/C7"}}, {Of: []string{"GPU"}, To: []string{"jira/OPS", "web"}}}
	must(t, m.config.Check(told, ""))
	return m
}

// What is said in a private channel is found in that channel and where the configuration says,
// and nowhere else: in no other channel, on no page, by no agent, in no finding. So is what a
// rule keeps to some places.
func TestWhoMayBeToldOfWhat(t *testing.T) {
	l, _ := private(t).replica(t, "", true)
	has(t, l, threads+tickets+1)
	for _, tc := range []struct {
		place       string
		oncall, gpu bool
	}{{Everywhere, false, false}, {"mcp", false, false}, {"web", false, true}, {"slack/C7", true, false}, {"slack/C1", false, false}, {"slack/G1", true, false}, {"jira/OPS", false, true}, {"jira/HR", false, false}, {"webhook", false, false}} {
		for words, want := range map[string]bool{"Xid 888": tc.oncall, "Xid 519": tc.gpu, "Xid 7": true} {
			hits, err := l.Find(t.Context(), tc.place, words, 3)
			must(t, err)
			if want != (len(hits) == 1) {
				t.Errorf("%s in %q: found %+v", words, tc.place, hits)
			}
		}
	}
}

// A process that reads nothing has one find that does, for the place that it names.
func TestSearchOverTheBus(t *testing.T) {
	m := private(t)
	if hits, err := Ask(t.Context(), m.bus, "slack/C7", "Xid 888", 1); !errors.Is(err, bus.ErrNobody) || hits != nil {
		t.Errorf("nobody answers: %v, %v", hits, err)
	}
	l, _ := m.replica(t, "", true)
	has(t, l, threads+tickets+1)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Answer(ctx) }()
	defer func() { end(); must(t, <-ended) }()
	comes(t, func() (bool, string) {
		_, err := Ask(t.Context(), m.bus, "slack/C7", "Xid 7", 1)
		return err == nil, fmt.Sprint("nobody answers: ", err)
	})
	for place, want := range map[string]int{"slack/C7": 1, "slack/C1": 0} {
		hits, err := Ask(t.Context(), m.bus, place, "Xid 888", 1)
		must(t, err)
		if len(hits) != want || want == 1 && !strings.Contains(hits[0].Quote, "blame ada") {
			t.Errorf("in %s: %+v", place, hits)
		}
	}
	for _, body := range []string{"", "{", `{"query":"x","most":0}`, `{"most":1,"query":"` + strings.Repeat("x", longestQuery+1) + `"}`} {
		if hits, err := l.answer(t.Context(), []byte(body)); err == nil {
			t.Errorf("%.20s: answered with %+v", body, hits)
		}
	}
	if _, err := Ask(t.Context(), m.bus, "slack/C7", "x", 0); err == nil || !strings.Contains(err.Error(), "no question that can be answered") {
		t.Errorf("what cannot be answered is not said: %v", err)
	}
}

func TestTellRules(t *testing.T) {
	for want, r := range map[string]TellRule{
		"":                    {Of: []string{"gpu-oncall"}, To: []string{"slack", "slack/C1", "jira/OPS", "web", "mcp", "webhook", "kubectl"}},
		"it names nothing":    {Of: []string{"gpu-oncall"}},
		"it names nothing: ":  {To: []string{"slack"}},
		`to has "irc"`:        {Of: []string{"a"}, To: []string{"irc"}},
		`to has "slack/"`:     {Of: []string{"a"}, To: []string{"slack/"}},
		`to has "webhook/ab"`: {Of: []string{"a"}, To: []string{"webhook/ab"}},
	} {
		err := Config{Tell: []TellRule{r}}.Check(told, "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "knowledge.tell[0]: "+want)) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
