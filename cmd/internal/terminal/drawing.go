package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/unpend/unpend/rca/diagnosis"
)

// The columns of one memory slice: two brackets and something between them, but
// no more than a short label needs.
const minSlice, maxSlice = 3, 12

// besideLabels is the width from which labels stand beside the bars instead of
// above them; chat gets 40 columns.
const besideLabels = 60

// Drawing draws a GPU's memory in lines of at most so many columns, before and
// after: a cell per memory slice, an instance as wide as the slices it takes,
// an empty cell where there is no instance. An instance that nobody holds shows
// its profile alone, one whose holder could not be told a "?". Where there is no
// room for a holder's name a "*" says that somebody holds it.
func Drawing(d diagnosis.Drawing, columns int, ascii bool) []string {
	return Options{ASCII: ascii}.drawing(d, columns, "after")
}

// drawing is Drawing with a label for the second picture.
func (o Options) drawing(d diagnosis.Drawing, columns int, after string) []string {
	now := o.clean(fmt.Sprintf("%s/GPU %d", d.Node, d.GPU))
	if d.Slices <= 0 {
		return []string{o.cut(now, columns)}
	}
	if columns < besideLabels {
		out := append([]string{o.cut(now, columns)}, o.bar(d.Slices, d.Before, columns)...)
		if d.Note != "" {
			out = append(out, o.wrap(o.clean(d.Note), columns, 2)...)
		}
		if len(d.After) > 0 {
			out = append(append(out, after), o.bar(d.Slices, d.After, columns)...)
		}
		return out
	}
	// The label gives way so that a slice of the bar keeps a short label.
	label := min(max(len(after), width(now))+2, columns/3)
	beside := func(text, line string) string {
		return pad(o.cut(text, label-2), label) + line
	}
	var out []string
	for _, l := range o.bar(d.Slices, d.Before, columns-label) {
		out = append(out, beside(now, l))
	}
	if d.Note != "" {
		for _, l := range o.fold(o.clean(d.Note), columns-label) {
			out = append(out, beside("", l))
		}
	}
	if len(d.After) > 0 {
		for _, l := range o.bar(d.Slices, d.After, columns-label) {
			out = append(out, beside(after, l))
		}
	}
	return out
}

// bar draws slots in one line. Slots that overlap or leave the GPU cannot be
// drawn to scale; then the bar says so.
func (o Options) bar(slices int, slots []diagnosis.DrawnSlot, room int) []string {
	slice := min(maxSlice, room/slices)
	if slice < minSlice {
		return []string{o.cut(fmt.Sprintf("%d slices do not fit here", slices), room)}
	}
	var b strings.Builder
	at := 0
	empty := func(to int) {
		for ; at < to; at++ {
			b.WriteString("[" + strings.Repeat(" ", slice-2) + "]")
		}
	}
	for _, s := range sorted(slots) {
		if s.Start < at || s.Size <= 0 || s.Start+s.Size > slices {
			return []string{o.cut("instances overlap: not drawn", room)}
		}
		empty(s.Start)
		inner := s.Size*slice - 2
		b.WriteString("[" + pad(o.slotLabel(s, inner), inner) + "]")
		at = s.Start + s.Size
	}
	empty(slices)
	return []string{b.String()}
}

func sorted(slots []diagnosis.DrawnSlot) []diagnosis.DrawnSlot {
	return slices.SortedStableFunc(slices.Values(slots), func(a, b diagnosis.DrawnSlot) int { return a.Start - b.Start })
}

// slotLabel is the longest label that fits: profile and ns/pod, profile and
// pod, profile and the start of the pod's name, profile.
func (o Options) slotLabel(s diagnosis.DrawnSlot, room int) string {
	profile := o.clean(s.Profile)
	if short, rest, found := strings.Cut(profile, "."); found {
		_, attribute, _ := strings.Cut(rest, "+")
		profile = short
		if attribute != "" && width(short+"+"+attribute) <= room {
			profile += "+" + attribute
		}
	}
	if s.Holder == "" {
		return o.cut(profile, room)
	}
	holder := o.clean(s.Holder)
	_, pod, _ := strings.Cut(holder, "/")
	dot := o.glyph("·", ":")
	for _, h := range []string{holder, pod} {
		if h != "" && width(profile+dot+h) <= room {
			return profile + dot + h
		}
	}
	if pod == "" {
		pod = holder
	}
	if width(profile+dot)+1 > room {
		// A held instance must not look free, however narrow.
		return cutBare(cutBare(profile, room-1)+"*", room)
	}
	return cutBare(profile+dot+pod, room)
}

// cutBare shortens without a mark: in a cell of six columns each one counts.
func cutBare(s string, n int) string {
	return ansi.Truncate(s, max(0, n), "")
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
