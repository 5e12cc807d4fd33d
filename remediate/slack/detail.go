package slack

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
)

// details is the part of the thread that has everything behind a finding.
const details = "details"

// textOfDetail is how long one text of them is.
const textOfDetail = 600

// paragraphs gathers texts into blocks, while there is room in the message.
type paragraphs struct {
	blocks []api.Block
	left   int // paragraphs that found no room
}

func (p *paragraphs) add(t *rich) {
	if t.n == 0 {
		return
	}
	next := append(slices.Clip(p.blocks), t.block())
	const last = 400 // for what says how many were left out
	if p.left > 0 || len(next) > maxBlocks-1 || size(next) > maxMessage-last {
		p.left++
		return
	}
	p.blocks = next
}

func (s *Slack) details(d diagnosis.Summary) message {
	var p paragraphs
	for _, c := range d.Causes {
		t := newParagraph().bold(fmt.Sprintf("%s, %s", c.ID, c.Certainty)).plain(": " + c.Says)
		for _, e := range c.Evidence {
			t.br().plain("• ").code(e.Ref).plain(" " + e.Fact)
		}
		p.add(t)
	}
	for _, f := range d.Fixes {
		p.add(steps(f))
	}
	for _, u := range d.Unread {
		p.add(newParagraph().bold("unread").plain(": " + u))
	}
	for _, k := range d.Knowledge {
		t := newParagraph().bold("seen before").plain(": " + k.Title + " (" + k.From() + ")")
		if k.Quote != "" {
			t.plain(" “" + k.Quote + "”")
		}
		if k.URL != "" { // an address, and no link: who wrote it is not us
			t.br().code(k.URL)
		}
		p.add(t)
	}
	if p.left > 0 || len(p.blocks) == 0 {
		p.blocks = append(p.blocks, newParagraph().plain(fmt.Sprintf("%d more: ", p.left)).code("kubectl unpend show "+d.Incident).block())
	}
	return message{text: escape.Replace("Details of " + fit(clean(d.Incident), maxHeader)), blocks: p.blocks}
}

func newParagraph() *rich { return &rich{most: textOfDetail} }

// steps is a fix with all that it does, and the commands that do it.
func steps(f diagnosis.FixSummary) *rich {
	t := newParagraph().bold(fmt.Sprintf("fix %d", f.ID)).plain(": " + f.Title)
	for i, step := range f.Steps {
		t.br().plain(fmt.Sprintf("%d. %s", i+1, step))
	}
	for _, c := range f.Commands {
		if length(clean(c)) > textOfDetail || t.n+length(clean(c)) >= maxText-2 { // half a command does something else
			t.br().plain("a command that is too long stands in kubectl unpend show")
			continue
		}
		t.br().code(c)
	}
	if len(f.Conflicts) > 0 {
		t.br().plain("wants the same room as " + strings.Join(f.Conflicts, ", "))
	}
	return t
}

// happened is the line of the thread that says what became of a plan, and stays.
func (s *Slack) happened(n notice.Notice) message {
	t := newParagraph()
	when := n.Since
	if n.What == notice.Running && !n.Began.IsZero() {
		when = n.Began
	}
	t.at(when).plain("  ")
	n.Progress, n.Step = "", "" // the message above has them
	s.plan(t, n)
	if n.AuditHead != "" {
		t.br().plain("audit trail ").code(n.AuditHead)
	}
	return message{text: escape.Replace(fit(clean(fmt.Sprintf("plan %.12s: %s", n.Plan, n.What)), maxHeader)), blocks: []api.Block{t.block()}}
}
