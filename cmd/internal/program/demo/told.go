package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/jira"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/slack"
)

// told shows what people would have read of the story elsewhere: the message in their channel
// as it was posted and as it was edited last, and the ticket at its end.
func (d *demo) told(ctx context.Context, found diagnosis.Diagnosis) error {
	travels, err := found.Travelled()
	if err != nil {
		return err
	}
	rem, err := plan.Store{Dynamic: d.deps.Dynamic}.Get(ctx, found.Fixes[0].Plan)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	const cluster = "demo"
	posted := notice.Proposal{Incident: found.Incident, Finding: &travels, Read: d.started}
	begun, ended := posted, posted
	ended.Plans, ended.Resolved = []notice.Notice{executor.NoticeOf(rem)}, time.Now()
	begun.Plans = []notice.Notice{ended.Plans[0]}
	begun.Plans[0].What = notice.Running
	for _, is := range []struct {
		says  string
		lines []string
	}{
		{"\nIn Slack that is one message, posted as", slack.Preview(posted, cluster, true)},
		{"and edited while it lived, in the end to", slack.Preview(ended, cluster, true)},
		{"\nIn Jira it is one ticket, in the end closed, with a comment for each thing that happened:", jira.Preview(cluster, 74, 1, begun, ended)},
	} {
		d.say(is.says)
		if err := terminal.Preview(d.std.Out, is.lines, console.TerminalOptions(d.std.Out)); err != nil {
			return err
		}
	}
	return nil
}
