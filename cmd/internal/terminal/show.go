package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Detail is everything behind a finding.
type Detail struct {
	diagnosis.Diagnosis
	Holders []Pod           `json:"holders"` // of GPUs of the nodes that it is about
	Refuted []diagnosis.Fix `json:"refuted"` // tried, and rejected on the copy
	// Stops are, by fix, the pods that it stops.
	Stops map[int][]Pod `json:"-"`
}

// detailText tells all of a finding.
type detailText struct{ Options }

// Show writes everything behind a finding; nothing is cut.
func Show(w io.Writer, d Detail, o Options) error {
	finding, detail := findingText{o}, detailText{o}
	lines := finding.head(d.Diagnosis)
	section := func(title string, body []string) {
		if len(body) > 0 {
			lines = append(append(lines, o.bold(title)), body...)
		}
	}
	lines = append(lines, o.paragraph("  ", d.Headline)...)
	section("PODS", detail.waitingPods(d.Pods))
	section("WHY", detail.allCauses(d.Causes))
	section("NODES", detail.allNodes(d.Diagnosis))
	if len(d.Holders) > 0 {
		section("WHO HOLDS ITS GPUS", podText{o}.pods(d.Holders, "  "))
	}
	section("GPU", finding.picture(d.Diagnosis))
	var fixes []string
	for i, f := range d.Fixes {
		fixes = append(fixes, detail.wholeFix(f, i == 0, d.Stops[f.ID])...)
	}
	section(fixText{o.style}.fixesHead(), fixes)
	section("TRIED AND REFUTED", detail.refuted(d.Refuted))
	section("SEEN BEFORE", detail.known(d.Diagnosis))
	var unread []string
	for _, u := range finding.unread(d.Diagnosis) {
		unread = append(unread, u...)
	}
	lines = append(append(lines, unread...), finding.next(d.Diagnosis))
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write what is behind the finding: %w", err)
	}
	return nil
}

// paragraph is a text behind an indent, folded and never cut.
func (o style) paragraph(indent, text string) []string {
	return o.indented(indent, strings.Repeat(" ", width(indent)), o.fold(o.clean(text), o.columns()-width(indent)))
}

func (o detailText) waitingPods(p diagnosis.WaitingPods) []string {
	text := strings.Join(p.Names, ", ")
	switch more := p.Waiting - len(p.Names); {
	case len(p.Names) == 0:
		text = fmt.Sprintf("0 of %d exist", p.Waiting)
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	}
	if !p.Since.IsZero() {
		text += " since " + p.Since.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return o.paragraph("  ", text)
}

func (o detailText) allCauses(causes []diagnosis.Cause) []string {
	var out []string
	for _, c := range causes {
		out = append(out, o.paragraph("  ", fmt.Sprintf("%s (%s): %s", c.ID, c.Certainty, c.Says))...)
		for _, e := range c.Evidence {
			out = append(out, o.paragraph("      ", e.Ref+": "+e.Fact)...)
		}
	}
	return out
}

// allNodes says of every node why the pod is not there; those of the same reasons together.
func (o detailText) allNodes(d diagnosis.Diagnosis) []string {
	var order []string
	of := map[string][]string{}
	for _, n := range d.Nodes {
		why, _ := d.Unkept(1)
		var parts []string
		for _, b := range n.Blockers {
			parts = append(parts, fmt.Sprintf("%s: %s (%s)", b.Plugin, b.Reason, b.Cause))
		}
		if len(parts) > 0 {
			why = strings.Join(parts, "; ")
		}
		if of[why] == nil {
			order = append(order, why)
		}
		of[why] = append(of[why], n.Name)
	}
	var out []string
	for _, why := range order {
		out = append(out, o.paragraph("  ", strings.Join(of[why], ", "))...)
		out = append(out, o.paragraph("      ", why)...)
	}
	return out
}

// wholeFix is a fix with all that belongs to it; its commands are to be copied.
func (o detailText) wholeFix(f diagnosis.Fix, best bool, stops []Pod) []string {
	out := fixText{o.style}.fix(f, best)
	add := func(text string) { out = append(out, o.paragraph(proofIndent, text)...) }
	if f.Effect != nil {
		add(consentText(o).brings(f)[0])
	}
	if f.Held != "" {
		add("guard-rails: " + f.Held)
	}
	if len(stops) > 0 {
		add("stops " + consentText(o).stops(Consent{Fix: f, Stops: stops}))
		out = append(out, podText(o).pods(stops, proofIndent+"  ")...)
	}
	if len(f.Steps) > 0 {
		add("steps: " + strings.Join(f.Steps, "; "))
	}
	if len(f.Commands) > 0 {
		add("by hand:")
	}
	for _, c := range f.Commands {
		out = append(out, proofIndent+"  "+o.Again.kubectl(clean(c, false)))
	}
	if f.Plan != "" {
		add("plan " + f.Plan)
	}
	return out
}

func (o detailText) refuted(fixes []diagnosis.Fix) []string {
	var out []string
	for _, f := range fixes {
		out = append(out, o.paragraph("  ", f.Title)...)
		out = append(out, o.paragraph("      ", f.Proof.Why)...)
	}
	return out
}

func (o detailText) known(d diagnosis.Diagnosis) []string {
	var out []string
	for _, k := range d.Knowledge {
		out = append(out, o.paragraph("  ", strings.TrimSpace(fmt.Sprintf("%s (%s) %s", k.Title, k.From(), k.URL)))...)
		if k.Quote != "" {
			out = append(out, o.paragraph("      ", k.Quote)...)
		}
	}
	return out
}
