package terminal

import (
	"fmt"
	"slices"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/drawing"
)

// besideLabels is the width from which labels stand beside the bars instead of
// above them; chat gets 40 columns.
const besideLabels = 60

// Drawing draws a GPU's memory in lines of at most so many columns, before and
// after: a cell per memory slice, an instance as wide as the slices it takes,
// an empty cell where there is no instance. An instance that nobody holds shows
// its profile alone, one whose holder could not be told a "?". Where there is no
// room for a holder's name a "*" says that somebody holds it.
func Drawing(d diagnosis.Drawing, columns int, ascii bool) []string {
	return style{ASCII: ascii}.drawing(d, columns, "after")
}

// drawing is Drawing with a label for the second picture.
func (o style) drawing(d diagnosis.Drawing, columns int, after string) []string {
	now := o.clean(fmt.Sprintf("%s/GPU %d", d.Node, d.GPU))
	if d.Slices <= 0 {
		return []string{o.cut(now, columns)}
	}
	if columns < besideLabels {
		out := []string{o.cut(now, columns), drawing.Bar(d.Slices, d.Before, columns, o.ASCII)}
		if d.Note != "" {
			out = append(out, o.wrap(o.clean(d.Note), columns, 2)...)
		}
		if len(d.After) > 0 {
			out = append(out, after, drawing.Bar(d.Slices, d.After, columns, o.ASCII))
		}
		return out
	}
	// The label gives way so that a slice of the bar keeps a short label.
	label := min(max(len(after), width(now))+2, columns/3)
	beside := func(text, line string) string {
		return pad(o.cut(text, label-2), label) + line
	}
	var out []string
	out = append(out, beside(now, drawing.Bar(d.Slices, d.Before, columns-label, o.ASCII)))
	if d.Note != "" {
		for _, l := range o.fold(o.clean(d.Note), columns-label) {
			out = append(out, beside("", l))
		}
	}
	if len(d.After) > 0 {
		out = append(out, beside(after, drawing.Bar(d.Slices, d.After, columns-label, o.ASCII)))
	}
	return out
}

// afterLabel names the fix that makes the second picture true: the best of those
// that re-make the GPU that is drawn, which need not be the first.
func afterLabel(d diagnosis.Diagnosis) string {
	for _, f := range d.Fixes {
		for _, a := range f.Actions {
			if a.Relayout != nil && a.Target.Name == d.Drawing.Node && slices.Contains(a.Relayout.GPUs, d.Drawing.GPU) {
				return fmt.Sprintf("after fix %d", f.ID)
			}
		}
	}
	return "after"
}
