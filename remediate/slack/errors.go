package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/outbound"
)

// passes are errors in a 200 that pass by themselves:
// https://docs.slack.dev/reference/methods/chat.postMessage#errors
var passes = []string{"ratelimited", "rate_limited", "message_limit_exceeded", "internal_error", "fatal_error", "service_unavailable", "request_timeout"}

// unfit are errors about what is posted: the channel takes other messages.
var unfit = []string{"msg_too_long", "msg_blocks_too_long", "invalid_blocks", "invalid_blocks_format", "invalid_metadata_format", "invalid_metadata_schema", "metadata_too_large",
	"no_text", "invalid_arguments", "invalid_form_data", "block_mismatch", "markdown_text_conflict"}

// remedies say where to mend what an operator can mend.
var remedies = map[string]string{
	"invalid_auth":            "the bot token in slack.tokenFile is not one: install the app again and write its token there",
	"not_authed":              "slack.tokenFile holds no token",
	"token_revoked":           "the bot token in slack.tokenFile was revoked: install the app again and write its token there",
	"token_expired":           "the bot token in slack.tokenFile has expired: install the app without token rotation",
	"account_inactive":        "the app is deactivated in the workspace: ask its administrators",
	"channel_not_found":       "slack.channel names no channel that the app sees: write its id (C…), and invite the app if it is private",
	"not_in_channel":          "the app is not in slack.channel: say /invite @unpend there",
	"is_archived":             "slack.channel is archived: name another",
	"missing_scope":           "the app lacks a right: install it again from deploy/slack/manifest.yaml",
	"edit_window_closed":      "the workspace forbids to edit messages that are old: ask its administrators to allow it to the app",
	"restricted_action":       "a rule of the workspace forbids it to post in slack.channel: ask its administrators",
	"team_access_not_granted": "the app is not installed in the workspace of slack.channel",
}

// gone are errors of a message that somebody has deleted.
var gone = []string{"message_not_found", "thread_not_found"}

// isGone says whether the message that was to be edited is there no more.
func isGone(err error) bool {
	e, ok := errors.AsType[api.SlackErrorResponse](err)
	return ok && slices.Contains(gone, e.Err)
}

// told is what an error of Slack's client means to us: what passes, what is never taken,
// and where to mend the rest. No token is in it.
func (s *Slack) told(doing string, err error) error {
	if err == nil || isGone(err) || errors.Is(err, context.Canceled) {
		return err
	}
	if e, ok := errors.AsType[api.SlackErrorResponse](err); ok {
		says := fmt.Errorf("%s: Slack says %s%s", doing, e.Err, s.more(e))
		switch {
		case slices.Contains(passes, e.Err):
			return &notice.Passing{Err: says}
		case slices.Contains(unfit, e.Err):
			return fmt.Errorf("%w: %w", notice.ErrRefused, says)
		}
		return says
	}
	says := errors.New(doing + ": " + s.scrub(err.Error()))
	if e, ok := errors.AsType[*api.RateLimitedError](err); ok {
		return &notice.Passing{Err: says, After: e.RetryAfter}
	}
	if e, ok := errors.AsType[*outbound.StatusError](err); ok {
		return outbound.Judge(e.Code, e.After, says)
	}
	return &notice.Passing{Err: says} // nobody knows whether Slack heard it
}

func (s *Slack) more(e api.SlackErrorResponse) string {
	text := ""
	if m := e.ResponseMetadata.Messages; len(m) > 0 {
		text = " (" + strings.Join(m, "; ") + ")"
	}
	if e.Needed != "" {
		text += " (needed: " + e.Needed + ")"
	}
	if remedy := remedies[e.Err]; remedy != "" {
		text += ": " + remedy
	}
	return s.scrub(text)
}

func (s *Slack) scrub(text string) string { return scrub(text, s.opts.Token) }

// scrub takes secrets out of a text.
func scrub(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(token)")
		}
	}
	return text
}
