package jira

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// fixes are what can be done, what each brings and costs, and the commands that do it.
func fixes(p notice.Proposal, at scale) document {
	d := *p.Finding
	if len(d.Fixes) == 0 {
		w := words{most: at.text}
		return document{{heading: "Fixes"}, {text: w.plain(wording.NoFix(d)).runs}}
	}
	out := document{{heading: "Fixes"}}
	for _, f := range d.Fixes[:min(at.fixes, len(d.Fixes))] {
		out = append(out, fix(f, at)...)
	}
	if rest := len(d.Fixes) - at.fixes + d.LeftOut["fixes"]; rest > 0 {
		w := words{most: at.text}
		out = append(out, block{text: w.plain(fmt.Sprintf("and %d more: ", rest)).name("kubectl unpend show " + p.Incident).runs})
	}
	return out
}

func fix(f diagnosis.FixSummary, at scale) document {
	title := words{most: at.text}
	title.bold(fmt.Sprintf("%d. %s", f.ID, f.Title))
	if held := wording.Held(f); held != "" {
		title.plain(" (" + held + ")")
	}
	var list [][]run
	item := func(format string, of ...any) {
		w := words{most: at.text}
		list = append(list, w.plain(fmt.Sprintf(format, of...)).runs)
	}
	item("%s", wording.Price(f))
	if who := wording.Stopped(f); who != "" {
		item("stops %s", who)
	}
	if fate, who := wording.Fate(f), wording.ThenWait(f); fate != "" && who != "" {
		item("%s: %s", fate, who)
	} else if fate != "" {
		item("%s", fate)
	}
	item("%s: %s", f.Proof.Verdict, f.Proof.Why)
	if len(f.Conflicts) > 0 {
		item("wants the same room as %s", strings.Join(f.Conflicts, ", "))
	}
	for i, step := range f.Steps[:min(at.evidence, len(f.Steps))] {
		item("step %d: %s", i+1, step)
	}
	out := document{{text: title.runs}, {items: list}}
	if c := commands(f, at); c != "" {
		out = append(out, block{code: c})
	}
	return out
}

// commands are whole, for half a command does something else.
func commands(f diagnosis.FixSummary, at scale) string {
	var lines []string
	for _, c := range f.Commands {
		c = wording.Clean(c)
		if wording.Length(c) > at.text || strings.Contains(c, "{noformat") || len(lines) >= at.evidence {
			c = "# a command that is too long stands in kubectl unpend show"
		}
		if len(lines) == 0 || lines[len(lines)-1] != c {
			lines = append(lines, c)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
