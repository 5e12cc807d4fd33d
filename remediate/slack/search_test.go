package slack_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/unpend/unpend/remediate/notifytest"
	plans "github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
)

// Who searches in a channel that findings are told in is answered alone; elsewhere, or as a
// guest, nobody is, and nothing is looked for.
func TestSearch(t *testing.T) {
	var asked []string
	h := listensIn(t, notifytest.NewClock(), "C0ELSE", func(_ context.Context, channel, text string) (string, error) {
		if channel != "C0ELSE" {
			t.Errorf("searched for readers of %s", channel)
		}
		asked = append(asked, text)
		if text == "nothing" {
			return "", fmt.Errorf("%w: nothing is read", plans.ErrRefused)
		}
		return "found <!channel> " + text, nil
	})
	for n, tc := range []struct {
		who        fakeslack.User
		text, want string
		asked      int
	}{
		{ada, "search 2g.10gb pending a100", "found &lt;!channel&gt; 2g.10gb pending a100", 1},
		{ada, " search   a &amp; b &lt;c&gt;", "found &lt;!channel&gt; a &amp; b &lt;c&gt;", 2},
		{ada, "search nothing", "Nothing was done: refused: nothing is read", 3},
		{ada, "search ", "Nothing was done: refused: that names nothing to search for.", 3},
		{ada, "search " + strings.Repeat("x", 700), "Nothing was done: refused: the question is too long.", 3},
		{ada, "searching x", "Nothing was done: refused: that is not understood. Ask: /unpend why pod/NAME -n NAMESPACE; or: /unpend search TEXT", 3},
		{guest, "search x", "Nothing was done: refused: guests and bots decide nothing", 3},
		{other, "search x", "Nothing was done: refused: you are of another workspace", 3},
	} {
		if err := h.Ask(tc.who, tc.text); err != nil {
			t.Fatal(err)
		}
		says := h.answered(t, n+1)
		if !strings.HasPrefix(says.Text, tc.want) || says.User != tc.who.ID || len(asked) != tc.asked {
			t.Errorf("%s %q: %+v, asked for %q", tc.who.ID, tc.text, says, asked)
		}
	}
	if all := h.all(); len(all) != 0 {
		t.Errorf("the desk was asked %q", all)
	}
	if all := h.Server.Messages(""); len(all) != 0 {
		t.Errorf("everybody reads %+v", all)
	}
}

// In another channel nobody has said who may read it.
func TestSearchElsewhere(t *testing.T) {
	asked := 0
	h := listensIn(t, notifytest.NewClock(), fakeslack.Channel, func(context.Context, string, string) (string, error) { asked++; return "found", nil })
	if err := h.Ask(ada, "search x"); err != nil {
		t.Fatal(err)
	}
	if says := h.answered(t, 1); asked != 0 || !strings.Contains(says.Text, "searched in the channels that findings are told in: ask there") {
		t.Errorf("%+v, asked %d times", says, asked)
	}
}
