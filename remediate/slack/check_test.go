package slack_test

import (
	"context"
	"testing"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/slack"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
)

// Before there is anything to tell it is known whether it could be told, and where to mend it;
// nothing is written for that.
func TestCheck(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	for want, o := range map[string]slack.Options{
		"<nil>": {Token: fakeslack.Token, Channel: fakeslack.Channel},
		"ask who we are: Slack says invalid_auth: the bot token in slack.tokenFile is not one: install the app again and write its token there":                                     {Token: "xoxb-gone", Channel: fakeslack.Channel},
		"look for a message in the channel: Slack says channel_not_found: slack.channel names no channel that the app sees: write its id (C…), and invite the app if it is private": {Token: fakeslack.Token, Channel: "C0NOWHERE"},
	} {
		o.Cluster, o.URL, o.Clock = "prod", w.URL(), notice.Clock{Now: clock.Now, Sleep: clock.Sleep}
		o.Load = func(context.Context, string) ([]byte, error) { return nil, nil }
		o.Save = func(context.Context, string, []byte) error { return nil }
		s, err := slack.New(o)
		if err != nil {
			t.Fatal(err)
		}
		got := "<nil>"
		if err := s.Check(t.Context()); err != nil {
			got = err.Error()
		}
		if got != want || w.Writes() != 0 {
			t.Errorf("%s, %d writes; want %s", got, w.Writes(), want)
		}
	}
}
