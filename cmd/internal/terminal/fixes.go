package terminal

import (
	"fmt"
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/unpend/unpend/rca/diagnosis"
)

// The columns right of a fix's title; a terminal that is too narrow for them has them below.
const (
	runsColumn  = 8
	stopsColumn = 8
	takesColumn = 9
	riskColumn  = 6
	costColumns = runsColumn + stopsColumn + takesColumn + riskColumn

	besideCosts = 60
	proofIndent = "      "
)

// fixText tells fixes: what each costs, and its proof.
type fixText struct{ style }

// fixesHead is the head of the table of fixes.
func (o fixText) fixesHead() string {
	if o.columns() < besideCosts {
		return o.bold("FIXES")
	}
	return o.bold(pad("FIXES", o.columns()-costColumns) + pad("RUNS", runsColumn) + pad("STOPS", stopsColumn) + pad("TAKES", takesColumn) + "RISK")
}

// fix is a fix with its proof: nothing of it is cut.
func (o fixText) fix(f diagnosis.Fix, best bool) []string {
	mark := " "
	if best {
		mark = o.glyph("▸", ">")
	}
	lead := fmt.Sprintf("%s %d ", mark, f.ID)
	out := o.title(lead, o.titleOf(f), o.costs(f))
	if best {
		out[0] = o.bold(out[0])
	}
	for _, text := range o.remarks(f) {
		for _, line := range o.fold(text, o.columns()-len(proofIndent)) {
			out = append(out, o.faint(proofIndent+line))
		}
	}
	return out
}

func (o fixText) titleOf(f diagnosis.Fix) string {
	text := o.clean(f.Title)
	switch {
	case f.Held != "" && !f.Automatic:
		text += " (refused now)"
	case f.Held != "":
		text += " (held back now)"
	case !f.Automatic:
		text += " (by hand)"
	}
	return text
}

// title sets what a fix costs beside the first line of its title, or below all of it.
func (o fixText) title(lead, text, costs string) []string {
	indent, whole := strings.Repeat(" ", width(lead)), o.columns()-width(lead)
	if o.columns() < besideCosts {
		out := o.indented(lead, indent, o.fold(text, whole))
		return append(out, o.indented(indent, indent, o.fold(strings.Join(strings.Fields(costs), " "), whole))...)
	}
	beside := o.columns() - costColumns - width(lead) - 1
	lines := o.fold(text, beside)
	if rest, ok := strings.CutPrefix(text, lines[0]); ok && len(lines) > 1 {
		lines = append(lines[:1], o.fold(strings.TrimSpace(rest), whole)...)
	}
	out := o.indented(lead, indent, lines)
	out[0] = pad(out[0], o.columns()-costColumns) + costs
	return out
}

func (o style) indented(lead, indent string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = lead + l
		lead = indent
	}
	return out
}

// remarks are the proof of a fix, who waits afterwards, and what the silicon alone would
// need.
func (o fixText) remarks(f diagnosis.Fix) []string {
	out := []string{o.clean(string(f.Proof.Verdict)) + ": " + o.clean(f.Proof.Why)}
	if f.Record != nil {
		out = append(out, f.Record.String())
	}
	if f.Effect != nil && len(f.Effect.ThenWait) > 0 {
		out = append(out, "then waits: "+o.clean(someNames(f.Effect.ThenWait)))
	}
	if hardware := o.hardware(f); hardware != "" {
		out = append(out, hardware)
	}
	if len(f.Conflicts) > 0 {
		out = append(out, "wants the same room as "+o.clean(strings.Join(f.Conflicts, ", ")))
	}
	return out
}

func (o fixText) costs(f diagnosis.Fix) string {
	risk := o.clean(string(f.Risk))
	if o.columns() < besideCosts {
		return fmt.Sprintf("runs %s, stops %s, takes %s, risk %s", o.runs(f), o.stopsOf(f), o.takes(f), risk)
	}
	return pad(o.runs(f), runsColumn) + pad(o.stopsOf(f), stopsColumn) + pad(o.takes(f), takesColumn) + o.tint(riskColor(f.Risk), risk)
}

// runs is how many of the incident's pods run afterwards, where that was worked out.
func (o fixText) runs(f diagnosis.Fix) string {
	if f.Effect == nil {
		return o.glyph("–", "-")
	}
	return fmt.Sprintf("%d of %d", f.Effect.Runs, f.Effect.Of)
}

// stopsOf counts the pods that a fix stops in any way; "+" where there may be others.
func (o fixText) stopsOf(f diagnosis.Fix) string {
	n := len(f.Cost.Evictions) + len(f.Cost.Restarts)
	if f.Cost.RestartsKnown != nil && !*f.Cost.RestartsKnown {
		return fmt.Sprintf("%d+ pods", n)
	}
	if n == 0 {
		return o.glyph("–", "-")
	}
	return countedPods(n)
}

// takes is how long a fix takes.
func (o fixText) takes(f diagnosis.Fix) string {
	switch m := f.Cost.Minutes; {
	case m > 0:
		return fmt.Sprintf("~%d min", m)
	case f.Automatic:
		return "<1 min"
	}
	return o.glyph("–", "-")
}

func riskColor(risk diagnosis.Risk) color.Color {
	switch risk {
	case "high":
		return lipgloss.Red
	case "medium":
		return lipgloss.Yellow
	case "low", "none":
		return lipgloss.Green
	}
	return nil
}

// hardware says what the silicon alone would need, where the mechanism at hand
// needs something else.
func (o fixText) hardware(f diagnosis.Fix) string {
	if f.HardwareEvictions == nil || *f.HardwareEvictions == len(f.Cost.Evictions) {
		return ""
	}
	return fmt.Sprintf("hardware alone: %s; %s re-makes the whole GPU", countedPods(*f.HardwareEvictions), o.clean(string(f.Mechanism)))
}
