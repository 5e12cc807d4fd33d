package slack

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// fix is what can be done, what it brings and what it costs.
func fix(f diagnosis.FixSummary, at scale) *rich {
	t := (&rich{most: at.text}).bold(fmt.Sprintf("%d  %s", f.ID, f.Title))
	if held := wording.Held(f); held != "" {
		t.plain(" (" + held + ")")
	}
	t.br().plain(wording.Price(f))
	if who := wording.Stopped(f); who != "" {
		t.br().plain("stops " + who)
		if fate := wording.Fate(f); fate != "" {
			t.plain("; ").bold(fate)
		}
	}
	if who := wording.ThenWait(f); who != "" {
		t.plain(": " + who)
	}
	return t.br().plain(string(f.Proof.Verdict) + ": " + f.Proof.Why)
}

// The buttons' action ids. A button's value is "v1:<plan>:<incident>", which says nothing
// of what is done: that is in the plan.
const (
	ActApprove = "unpend_approve"
	ActDryRun  = "unpend_dry_run"
	ActSnooze  = "unpend_snooze"
	ActNotThis = "unpend_not_this"
)

// buttons are there while people can choose, and clicks are heard.
func (s *Slack) buttons(r *record, p notice.Proposal) api.Block {
	if !s.opts.Buttons || !p.Undecided() {
		return nil
	}
	button := func(act, value, says string) *api.ButtonBlockElement {
		return api.NewButtonBlockElement(act, fit(value, maxValue), plainly(says, maxButton))
	}
	var all []api.BlockElement
	value := "v1::" + p.Incident
	f := choice(p)
	if f != nil {
		value = "v1:" + f.Plan + ":" + p.Incident
		approve := button(ActApprove, value, fmt.Sprintf("Approve #%d", f.ID)).WithStyle(api.StyleDanger)
		approve.Confirm = api.NewConfirmationBlockObject(plainly(fmt.Sprintf("Approve fix %d?", f.ID), maxConfirmTitle), plainly(consent(*f), maxConfirmText), plainly("Approve", maxConfirmLabel), plainly("Cancel", maxConfirmLabel)).
			WithStyle(api.StyleDanger)
		all = append(all, approve, button(ActDryRun, value, "Dry run"))
	}
	if !s.opts.NoSnooze && r.Snoozed.Until.IsZero() {
		all = append(all, button(ActSnooze, value, "Snooze 1 h"))
	}
	if f != nil {
		all = append(all, button(ActNotThis, value, "Not this"))
	}
	if len(all) == 0 {
		return nil
	}
	return api.NewActionBlock("", all...)
}

// choice is the fix that one may say yes to here: the best, or the best of those that are left
// once somebody has said "not this". Nil: there is none.
func choice(p notice.Proposal) *diagnosis.FixSummary {
	if p.Finding == nil {
		return nil
	}
	for i := range p.Finding.Fixes {
		f := &p.Finding.Fixes[i]
		if slices.ContainsFunc(p.Plans, func(n notice.Notice) bool { return n.Plan == f.Plan && n.What == notice.Rejected }) {
			continue
		}
		if wording.Offered(*f) {
			return f
		}
		return nil
	}
	return nil
}

// consent repeats what it costs, and which plan it is.
func consent(f diagnosis.FixSummary) string {
	end := fmt.Sprintf(". %s. Plan %.12s", wording.Price(f), f.Plan)
	if fate := wording.Fate(f); fate != "" {
		end = "; " + fate + end
	}
	who := ""
	if names := wording.Stopped(f); names != "" {
		who = ". Stops " + names
	}
	return fit(clean(f.Title)+clean(who), maxConfirmText-length(clean(end))) + clean(end)
}

// footer is where it comes from, how old it is, and the next command.
func (s *Slack) footer(p notice.Proposal) api.Block {
	var parts []string
	if s.opts.Cluster != "" {
		parts = append(parts, s.opts.Cluster)
	}
	parts = append(parts, p.Incident)
	next := "kubectl unpend why " + p.Incident
	if f := choice(p); f != nil && p.Undecided() {
		parts = append(parts, fmt.Sprintf("plan %.12s, good for 15 min once it is recorded", f.Plan))
		next = fmt.Sprintf("kubectl unpend approve %s#%d", p.Incident, f.ID)
	}
	if !p.Read.IsZero() {
		parts = append(parts, "facts read "+p.Read.UTC().Format(time.TimeOnly)+" UTC")
	}
	return api.NewContextBlock("", plainly(strings.Join(append(parts, next), " · "), maxText/4))
}
