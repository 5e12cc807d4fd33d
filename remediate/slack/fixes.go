package slack

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
)

// fix is what can be done, what it brings and what it costs.
func fix(f diagnosis.FixSummary, at scale) *rich {
	t := (&rich{most: at.text}).bold(fmt.Sprintf("%d  %s", f.ID, f.Title))
	switch {
	case f.Held != "" && f.Automatic:
		t.plain(" (held back now: " + f.Held + ")")
	case f.Held != "":
		t.plain(" (refused now: " + f.Held + ")")
	case !f.Automatic:
		t.plain(" (by hand)")
	}
	t.br().plain(price(f))
	if who := stopped(f); who != "" {
		t.br().plain("stops " + who)
	}
	if f.Effect != nil && len(f.Effect.ThenWait) > 0 {
		t.br().plain("then waits: " + some(f.Effect.ThenWait, len(f.Effect.ThenWait)))
	}
	return t.br().plain(string(f.Proof.Verdict) + ": " + f.Proof.Why)
}

// price is what a fix brings and costs, in one line.
func price(f diagnosis.FixSummary) string {
	runs := "–"
	if f.Effect != nil {
		runs = fmt.Sprintf("%d of %d", f.Effect.Runs, f.Effect.Of)
	}
	return fmt.Sprintf("runs %s · stops %s · takes %s · risk %s", runs, stops(f), takes(f), f.Risk)
}

// stops counts the pods that stop in any way; "+" where there may be others.
func stops(f diagnosis.FixSummary) string {
	n, more := f.EvictionCount+f.RestartCount, ""
	if f.Cost.RestartsKnown != nil && !*f.Cost.RestartsKnown {
		more = "+"
	}
	switch {
	case n == 0 && more == "":
		return "nobody"
	case n == 1 && more == "":
		return "1 pod"
	}
	return fmt.Sprintf("%d%s pods", n, more)
}

func takes(f diagnosis.FixSummary) string {
	switch m := f.Cost.Minutes; {
	case m > 0:
		return fmt.Sprintf("~%d min", m)
	case f.Automatic:
		return "<1 min"
	}
	return "–"
}

func stopped(f diagnosis.FixSummary) string {
	return some(slices.Concat(f.Cost.Evictions, f.Cost.Restarts), f.EvictionCount+f.RestartCount)
}

// someNames are named; the others are counted.
const someNames = 3

func some(pods []diagnosis.PodName, all int) string {
	var names []string
	for _, p := range pods[:min(len(pods), someNames)] {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if rest := all - len(names); rest > 0 && len(names) > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), rest)
	}
	return strings.Join(names, ", ")
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
		if offered(*f) {
			return f
		}
		return nil
	}
	return nil
}

// offered says of a fix that one may say yes to it here: it is carried out for people, by
// no means refused now, and leaves not as many waiting as before.
func offered(f diagnosis.FixSummary) bool {
	return f.Automatic && f.Held == "" && hash.MatchString(f.Plan) && f.Class != diagnosis.MusicalChair
}

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// consent repeats what it costs, and which plan it is.
func consent(f diagnosis.FixSummary) string {
	end := fmt.Sprintf(". %s. Plan %.12s", price(f), f.Plan)
	who := ""
	if names := stopped(f); names != "" {
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
		parts = append(parts, fmt.Sprintf("plan %.12s, for 15 min once it is asked for", f.Plan))
		next = fmt.Sprintf("kubectl unpend approve %s#%d", p.Incident, f.ID)
	}
	if !p.Read.IsZero() {
		parts = append(parts, "facts read "+p.Read.UTC().Format(time.TimeOnly)+" UTC")
	}
	return api.NewContextBlock("", plainly(strings.Join(append(parts, next), " · "), maxText/4))
}
