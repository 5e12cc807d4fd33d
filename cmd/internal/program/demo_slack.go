package program

import (
	"context"
	"fmt"
	"time"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/slack"
)

// inSlack shows the message that people would have had of the story in their channel: as it
// was posted, and as it was edited last.
func (d *demo) inSlack(ctx context.Context, found diagnosis.Diagnosis) error {
	travels, err := found.Travelled()
	if err != nil {
		return err
	}
	rem, err := plan.Store{Dynamic: d.deps.Dynamic}.Get(ctx, found.Fixes[0].Plan)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	posted := notice.Proposal{Incident: found.Incident, Finding: &travels, Read: d.started}
	edited := posted
	edited.Plans, edited.Resolved = []notice.Notice{executor.NoticeOf(rem)}, time.Now()
	for _, is := range []struct {
		says string
		of   notice.Proposal
	}{{"\nIn Slack that is one message, posted as", posted}, {"and edited while it lived, in the end to", edited}} {
		d.say(is.says)
		if err := terminal.Preview(d.std.Out, slack.Preview(is.of, "demo", true), terminalOptions(d.std.Out)); err != nil {
			return err
		}
	}
	return nil
}
