package slack

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/unpend/unpend/remediate/plan"
)

// Command is what people write to ask.
const Command = "/unpend"

// maxAsked is how long a question may be.
const maxAsked = 600

// help is what can be asked.
func (l *Listener) help() string {
	says := "Ask: " + Command + " why pod/NAME -n NAMESPACE"
	if l.opts.Search != nil {
		says += "; or: " + Command + " search TEXT"
	}
	return says
}

// mention is our own name, or another's, in a text.
var mention = regexp.MustCompile(`<@[A-Z0-9]+(\|[^>]*)?>`)

// asked answers a question, to who asks alone.
func (l *Listener) asked(ctx context.Context, at place, team, text string) {
	l.do(ctx, at, func(ctx context.Context) (string, error) {
		if err := l.member(ctx, at.user, team); err != nil {
			return "", err
		}
		if words, ok := l.searched(text); ok {
			return l.search(ctx, at, words)
		}
		pod, namespace, err := question(text, l.help())
		if err != nil {
			return "", err
		}
		return l.opts.Desk.Why(ctx, plan.Caller{Via: plan.ViaSlack, ID: at.user}, pod, namespace)
	})
}

// written undoes what Slack does to three characters of what people write:
// https://docs.slack.dev/messaging/formatting-message-text#escaping
var written = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// searched are the words that somebody wants to find, where there is anything to search.
func (l *Listener) searched(text string) (words string, is bool) {
	first, rest, _ := strings.Cut(strings.TrimSpace(mention.ReplaceAllString(text, " ")), " ")
	return strings.TrimSpace(written.Replace(rest)), first == "search" && l.opts.Search != nil
}

// search answers in the channels that findings are told in: what they quote there, every
// reader may see, and elsewhere nobody has said so.
func (l *Listener) search(ctx context.Context, at place, words string) (string, error) {
	switch {
	case !slices.Contains(l.opts.Channels, at.channel):
		return "", fmt.Errorf("%w: what the team has said is searched in the channels that findings are told in: ask there", plan.ErrRefused)
	case words == "":
		return "", fmt.Errorf("%w: that names nothing to search for. %s", plan.ErrRefused, l.help())
	case len(words) > maxAsked:
		return "", fmt.Errorf("%w: the question is too long. %s", plan.ErrRefused, l.help())
	}
	return l.opts.Search(ctx, at.channel, words)
}

// question reads "why pod/NAME [-n NAMESPACE]". What is no name of the API goes no further.
func question(text, help string) (pod, namespace string, err error) {
	if len(text) > maxAsked {
		return "", "", fmt.Errorf("%w: the question is too long. %s", plan.ErrRefused, help)
	}
	words := strings.Fields(mention.ReplaceAllString(text, " "))
	if len(words) < 2 || words[0] != "why" {
		return "", "", fmt.Errorf("%w: that is not understood. %s", plan.ErrRefused, help)
	}
	kind, pod, slash := strings.Cut(words[1], "/")
	if !slash {
		kind, pod = "pod", words[1]
	}
	switch rest := words[2:]; {
	case len(rest) == 2 && (rest[0] == "-n" || rest[0] == "--namespace"):
		namespace = rest[1]
	case len(rest) > 0:
		return "", "", fmt.Errorf("%w: that is not understood. %s", plan.ErrRefused, help)
	}
	if kind != "pod" && kind != "po" && kind != "pods" || len(validation.IsDNS1123Subdomain(pod)) > 0 || namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", "", fmt.Errorf("%w: that names no pod. %s", plan.ErrRefused, help)
	}
	return pod, namespace, nil
}
