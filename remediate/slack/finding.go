package slack

import (
	"fmt"
	"strings"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// scale is how much a message says.
type scale struct{ text, fixes int }

// scales are tried until a message is within Slack's limits; the last always is.
var scales = []scale{{500, 3}, {250, 3}, {120, 2}, {60, 1}}

// finding is an incident's message.
func (s *Slack) finding(r *record, p notice.Proposal) message {
	var m message
	for _, at := range scales {
		m = message{text: s.fallback(p), blocks: s.blocks(r, p, at)}
		if size(m.blocks) <= maxMessage {
			break
		}
	}
	return m
}

func (s *Slack) blocks(r *record, p notice.Proposal, at scale) []api.Block {
	state := s.state(p, at)
	if z := r.Snoozed; !z.Until.IsZero() {
		state.br().bold("snoozed by " + z.By).plain(" until ").at(z.Until).plain(", unless somebody decides")
	}
	out := []api.Block{header(wording.Headline(p)), state.block()}
	d := p.Finding
	if d == nil || !p.Resolved.IsZero() {
		return append(out, s.footer(p))
	}
	out = append(out, why(*d, at).block())
	if d.Drawing != nil {
		out = append(out, pre(wording.Picture(*d, chat)))
	}
	for _, f := range d.Fixes[:min(at.fixes, len(d.Fixes))] {
		out = append(out, fix(f, at).block())
	}
	if rest := len(d.Fixes) - at.fixes + d.LeftOut["fixes"]; rest > 0 && len(d.Fixes) > 0 {
		out = append(out, (&rich{most: at.text}).plain(fmt.Sprintf("and %d more: ", rest)).code("kubectl unpend show "+p.Incident).block())
	}
	if len(d.Fixes) == 0 {
		out = append(out, (&rich{most: at.text}).plain(wording.NoFix(*d)).block())
	}
	if b := s.buttons(r, p); b != nil {
		out = append(out, b)
	}
	if t := reworded(p, at); t.n > 0 {
		out = append(out, t.block())
	}
	return append(out, s.footer(p))
}

// reworded is a model's prose, below all that code says and offers, and named as what it is.
func reworded(p notice.Proposal, at scale) *rich {
	t := &rich{most: at.text}
	title, lines := wording.Reworded(p)
	if len(lines) > 0 {
		t.bold(title)
	}
	for _, line := range lines {
		t.br().plain("│ " + line)
	}
	return t
}

// fallback is what screen readers, phones and notifications have.
func (s *Slack) fallback(p notice.Proposal) string {
	text := wording.Headline(p)
	if n := p.Plan(); n != nil && p.Resolved.IsZero() {
		text += " (plan: " + n.What + ")"
	}
	return escape.Replace(fit(clean(text), maxFallback/5)) // an escaped character is five
}

// state is who waits since when, and where the plan stands.
func (s *Slack) state(p notice.Proposal, at scale) *rich {
	t := &rich{most: at.text}
	if d := p.Finding; d != nil && p.Resolved.IsZero() {
		if t.plain(wording.Waiting(*d)); !d.Pods.Since.IsZero() {
			t.plain(" since ").at(d.Pods.Since)
		}
		t.plain(", wants " + wording.Wants(*d))
	}
	if !p.Resolved.IsZero() {
		t.plain("Nobody of it waits any more since ").at(p.Resolved)
	}
	if who := wording.Taken(p); who != "" {
		t.br().bold(who).plain(" ").at(p.Taken.At)
	}
	if n := p.Plan(); n != nil {
		s.plan(t.br(), *n)
	}
	if t.n == 0 {
		t.plain("It waits.")
	}
	return t
}

// plan tells where a plan stands: approved by X → step 3/9 → done in 4m12s.
func (s *Slack) plan(t *rich, n notice.Notice) {
	if len(n.Approvers) > 0 {
		t.bold("approved by " + strings.Join(n.Approvers, ", ")).plain(" → ")
	}
	where, what := wording.Standing(n)
	t.bold(where).plain(": " + what)
	if n.Reason != "" && n.What != notice.Running {
		t.br().plain(n.Reason)
	}
	if n.What == notice.Parked {
		t.br().code("kubectl unpend release " + n.Node)
	}
}

func why(d diagnosis.Summary, at scale) *rich {
	t := &rich{most: at.text}
	for _, r := range wording.Why(d) {
		t.br().plain("• ")
		if r.Nodes != "" {
			t.bold(r.Nodes).plain("  ")
		}
		if r.Node != "" {
			t.code(r.Node).plain("  ")
		}
		t.plain(r.Says)
	}
	if t.n == 0 {
		t.plain("No node could be judged.")
	}
	return t
}

// chat is how many columns a drawing has on a phone.
const chat = 40
