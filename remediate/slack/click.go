package slack

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/remediate/plan"
)

// patience is how long one click is worked on.
const patience = time.Minute

// snoozed is for how long a message is left alone.
const snoozed = time.Hour

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

var incidents = regexp.MustCompile(`^gpu-[0-9a-f]{10}$`)

// clicked is what people press a button for.
func (l *Listener) clicked(ctx context.Context, c api.InteractionCallback) {
	at := place{channel: c.Channel.ID, user: c.User.ID, thread: c.Container.ThreadTs}
	if c.Type != api.InteractionTypeBlockActions || len(c.ActionCallback.BlockActions) != 1 || c.User.ID == "" {
		return
	}
	if !slices.Contains(l.opts.Channels, c.Channel.ID) {
		l.opts.Logger.WarnContext(ctx, "a click in another channel is not heard", "channel", c.Channel.ID)
		return
	}
	b := c.ActionCallback.BlockActions[0]
	l.do(ctx, at, func(ctx context.Context) (string, error) {
		if err := l.member(ctx, c.User.ID, c.Team.ID, c.User.TeamID); err != nil {
			return "", err
		}
		return l.act(ctx, plan.Caller{Via: plan.ViaSlack, ID: c.User.ID}, b.ActionID, b.Value)
	})
}

// act does what a button is for.
func (l *Listener) act(ctx context.Context, who plan.Caller, action, value string) (string, error) {
	name, incident, err := decode(value)
	if err != nil {
		return "", err
	}
	do := map[string]func(context.Context, plan.Caller, string, string) (string, error){
		ActApprove: l.opts.Desk.Approve, ActDryRun: l.opts.Desk.DryRun, ActNotThis: l.opts.Desk.Reject}[action]
	switch {
	case action == ActSnooze:
		return l.snooze(ctx, who, incident)
	case do == nil:
		return "", fmt.Errorf("%w: %q is no button of this version", plan.ErrRefused, fit(action, maxButton))
	case name == "":
		return "", fmt.Errorf("%w: the button names no plan", plan.ErrRefused)
	}
	return do(ctx, who, incident, name)
}

// decode reads the value of a button: "v1:<plan>:<incident>", where the plan may be missing.
func decode(value string) (name, incident string, err error) {
	version, rest, _ := strings.Cut(value, ":")
	name, incident, _ = strings.Cut(rest, ":")
	if version != "v1" || name != "" && !hash.MatchString(name) || !incidents.MatchString(incident) {
		return "", "", fmt.Errorf("%w: the button is of another version: the message is written again as soon as there is news", plan.ErrRefused)
	}
	return name, incident, nil
}
