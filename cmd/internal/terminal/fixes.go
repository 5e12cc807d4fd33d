package terminal

import (
	"fmt"
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/unpend/unpend/rca/diagnosis"
)

// The columns right of a fix's title.
const (
	evictsColumn = 8
	takesColumn  = 9
	riskColumn   = 6
	proofIndent  = "      "
)

// fixes is the table of fixes in at most room lines, its head included. Fixes
// that do not fit are counted.
func (o Options) fixes(fixes []diagnosis.Fix, room int) []string {
	title := o.columns() - evictsColumn - takesColumn - riskColumn
	out := []string{o.bold(pad("FIXES", title) + pad("EVICTS", evictsColumn) + pad("TAKES", takesColumn) + "RISK")}
	if len(fixes) == 0 {
		return append(out, "  none is known")
	}
	shown := fixes[:min(len(fixes), maxFixesShown)]
	for i, f := range shown {
		// Each fix after this one still gets its two lines, and what is left out one.
		left := room - len(out) - 2*(len(shown)-i-1)
		if len(fixes) > len(shown) {
			left--
		}
		if left < 2 {
			return append(out, more(len(fixes)-i))
		}
		out = append(out, o.fix(f, i == 0, title, left)...)
	}
	if n := len(fixes) - len(shown); n > 0 {
		out = append(out, more(n))
	}
	return out
}

func more(n int) string { return fmt.Sprintf("  and %d more, see -o json", n) }

// fix takes from two to room lines: the title may wrap once, the proof once,
// and where the mechanism needs more than the silicon that is said.
func (o Options) fix(f diagnosis.Fix, best bool, title, room int) []string {
	mark := " "
	if best {
		mark = o.glyph("▸", ">")
	}
	lead := fmt.Sprintf("%s %d ", mark, f.ID)
	text := o.clean(f.Title)
	switch {
	case f.Held != "" && !f.Automatic:
		text += " (refused now)"
	case f.Held != "":
		text += " (held back now)"
	case !f.Automatic:
		text += " (by hand)"
	}
	hardware := o.hardware(f)
	optional := room - 2
	if hardware != "" && optional > 0 {
		optional--
	} else {
		hardware = ""
	}
	titles := o.wrap(text, title-width(lead)-1, min(2, 1+max(0, optional)))
	optional -= len(titles) - 1
	proof := o.clean(string(f.Proof.Verdict)) + ": " + o.clean(f.Proof.Why)
	proofs := o.wrap(proof, o.columns()-len(proofIndent), min(2, 1+max(0, optional)))

	first := pad(lead+titles[0], title)
	if best {
		first = o.bold(first)
	}
	out := []string{first + o.cost(f)}
	for _, t := range titles[1:] {
		out = append(out, strings.Repeat(" ", width(lead))+t)
	}
	for _, p := range proofs {
		out = append(out, o.faint(proofIndent+p))
	}
	if hardware != "" {
		out = append(out, o.faint(proofIndent+hardware))
	}
	return out
}

func (o Options) cost(f diagnosis.Fix) string {
	none := o.glyph("–", "-")
	evicts := none
	if n := len(f.Cost.Evictions); n == 1 {
		evicts = "1 pod"
	} else if n > 1 {
		evicts = fmt.Sprintf("%d pods", n)
	}
	risk := o.clean(string(f.Risk))
	return pad(evicts, evictsColumn) + pad(o.takes(f), takesColumn) + o.tint(riskColor(f.Risk), risk)
}

// takes is how long a fix takes.
func (o Options) takes(f diagnosis.Fix) string {
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
func (o Options) hardware(f diagnosis.Fix) string {
	if f.HardwareEvictions == nil || *f.HardwareEvictions == len(f.Cost.Evictions) {
		return ""
	}
	pods := fmt.Sprintf("%d pods", *f.HardwareEvictions)
	if *f.HardwareEvictions == 1 {
		pods = "1 pod"
	}
	return o.cut(fmt.Sprintf("hardware alone: %s; %s re-makes the whole GPU", pods, o.clean(string(f.Mechanism))),
		o.columns()-len(proofIndent))
}
