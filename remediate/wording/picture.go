package wording

import (
	"fmt"
	"slices"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/drawing"
)

// Picture is the one GPU that matters, before and after, in lines of at most so many columns
// but the note, which has two. The finding has to have a drawing.
func Picture(d diagnosis.Summary, columns int) []string {
	g := *d.Drawing
	out := []string{Fit(Clean(fmt.Sprintf("%s/GPU %d", g.Node, g.GPU)), columns), drawing.Bar(g.Slices, g.Before, columns, false)}
	if g.Note != "" {
		out = append(out, Fit(Clean(g.Note), 2*columns))
	}
	if len(g.After) > 0 {
		out = append(out, after(d), drawing.Bar(g.Slices, g.After, columns, false))
	}
	return append(out, legend)
}

// legend says what the marks of a drawing mean.
const legend = "* or ·pod: held, [1g ] idle, [ ] none"

// after names the fix that makes the second picture true.
func after(d diagnosis.Summary) string {
	for _, f := range d.Fixes {
		if f.Proof.Node == d.Drawing.Node && slices.ContainsFunc(f.Kinds, func(k diagnosis.FixKind) bool { return k == diagnosis.RepartitionGPU }) {
			return fmt.Sprintf("after fix %d", f.ID)
		}
	}
	return "after"
}
