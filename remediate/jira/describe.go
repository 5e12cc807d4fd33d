package jira

import (
	"fmt"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// columns of a drawing in a ticket.
const columns = 80

// scale is how much a ticket says; columns are those of its drawing.
type scale struct{ text, evidence, fixes, columns int }

// scales are tried until a ticket is within Jira's limits; of the last the end is left out.
var scales = []scale{{1000, 20, 10, columns}, {400, 10, 5, columns}, {150, 4, 3, columns}}

// title is a ticket's; whether it is over its status says.
func title(p notice.Proposal) string {
	p.Resolved = time.Time{}
	return wording.Fit(strings.TrimSpace(wording.Clean(wording.Headline(p))), maxSummary)
}

// describe is what a ticket says.
func (j *Jira) describe(p notice.Proposal) (d document) {
	for _, at := range scales {
		if d = j.description(p, at); j.fits(d) {
			return d
		}
	}
	return j.within(d)
}

func (j *Jira) description(p notice.Proposal, at scale) document {
	d := document{{text: state(p, at)}}
	if n := p.Plan(); n != nil {
		d = append(d, block{text: standing(*n, at)})
	}
	if f := p.Finding; f != nil {
		d = append(d, reasons(*f, at)...)
		if f.Drawing != nil {
			d = append(d, block{heading: "The GPU that matters"}, block{code: strings.Join(wording.Picture(*f, at.columns), "\n")})
		}
		d = append(d, fixes(p, at)...)
		d = append(d, evidence(*f, at)...)
		d = append(d, reworded(p, at)...)
	}
	return append(d, block{text: j.footer(p)})
}

// state is who waits since when.
func state(p notice.Proposal, at scale) []run {
	w := words{most: at.text}
	if !p.Resolved.IsZero() {
		w.bold("Nobody of it waits any more since " + utc(p.Resolved) + ".").plain(" ")
	}
	if d := p.Finding; d != nil {
		w.plain(wording.Waiting(*d))
		if !d.Pods.Since.IsZero() {
			w.plain(" since " + utc(d.Pods.Since))
		}
		w.plain(", wants " + wording.Wants(*d))
	}
	if who := wording.Taken(p); who != "" {
		w.plain("; ").bold(who + " " + utc(p.Taken.At))
	}
	if len(w.runs) == 0 {
		w.plain("It waits.")
	}
	return w.runs
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// standing is where a plan stands, without its steps: each would be an edit that Jira writes
// to everybody about.
func standing(n notice.Notice, at scale) []run {
	w := words{most: at.text}
	if len(n.Approvers) > 0 {
		w.bold("approved by " + strings.Join(n.Approvers, ", ")).plain(" → ")
	}
	n.Progress, n.Step = "", ""
	where, what := wording.Standing(n)
	w.bold(where).plain(": " + what)
	if n.Reason != "" && n.What != notice.Running {
		w.plain(". " + n.Reason)
	}
	if n.What == notice.Parked {
		w.plain(": ").name("kubectl unpend release " + n.Node)
	}
	return w.runs
}

// reasons are why it waits; their counts add up to the number of nodes.
func reasons(d diagnosis.Summary, at scale) document {
	var list [][]run
	for _, r := range wording.Why(d) {
		w := words{most: at.text}
		if r.Nodes != "" {
			w.bold(r.Nodes)
			if r.Node != "" {
				w.plain(" ").name(r.Node)
			}
			w.plain(": ")
		}
		w.plain(r.Says)
		list = append(list, w.runs)
	}
	if len(list) == 0 {
		return document{{heading: "Why"}, {text: []run{{text: "No node could be judged."}}}}
	}
	return document{{heading: "Why"}, {items: list}}
}

// evidence is what each cause is made from, what was not read, and what was seen before.
func evidence(d diagnosis.Summary, at scale) (out document) {
	var list [][]run
	for _, c := range d.Causes {
		for i, e := range c.Evidence {
			if len(list) >= at.evidence || i >= at.evidence/2 {
				break
			}
			w := words{most: at.text}
			list = append(list, w.plain(string(c.ID)+", "+string(c.Certainty)+": ").name(e.Ref).plain(" "+e.Fact).runs)
		}
	}
	for _, u := range d.Unread[:min(at.evidence, len(d.Unread))] {
		w := words{most: at.text}
		list = append(list, w.plain("unread: "+u).runs)
	}
	if len(list) > 0 {
		out = append(out, block{heading: "Evidence"}, block{items: list})
	}
	var seen [][]run
	for _, k := range d.Knowledge[:min(at.fixes, len(d.Knowledge))] {
		w := words{most: at.text}
		if w.plain("“" + k.Title + "” (" + k.From() + ")"); k.Quote != "" {
			w.plain(": “" + k.Quote + "”")
		}
		if k.URL != "" {
			w.plain(" ").name(k.URL)
		}
		seen = append(seen, w.runs)
	}
	if len(seen) > 0 {
		out = append(out, block{heading: "Seen before"}, block{items: seen})
	}
	return out
}

// reworded is a model's prose, under a heading that says so, behind all that code says.
func reworded(p notice.Proposal, at scale) document {
	title, lines := wording.Reworded(p)
	var list [][]run
	for _, line := range lines {
		w := words{most: at.text}
		list = append(list, w.plain(line).runs)
	}
	if len(list) == 0 {
		return nil
	}
	return document{{heading: title}, {items: list}}
}

// footer is where it comes from, how old it is, and the next command.
func (j *Jira) footer(p notice.Proposal) []run {
	w := words{most: maxSummary}
	w.plain(j.opts.Cluster + " · incident " + p.Incident)
	if !p.Read.IsZero() {
		w.plain(" · facts read " + p.Read.UTC().Format("2006-01-02 15:04:05") + " UTC")
	}
	next := "kubectl unpend show " + p.Incident
	if d := p.Finding; d != nil && len(d.Fixes) > 0 && p.Undecided() && wording.Offered(d.Fixes[0]) {
		next = fmt.Sprintf("kubectl unpend approve %s#%d", p.Incident, d.Fixes[0].ID)
	}
	return w.plain(" · ").name(next).runs
}
