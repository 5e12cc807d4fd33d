// Package drawing draws the memory of one GPU in text, for terminals, chats and tickets,
// and makes names from the cluster safe to show there. Widths are columns of the screen,
// not bytes or runes.
package drawing

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

// Bar draws the slots of a GPU with so many memory slices in one line of at most room columns:
// a cell per slice, an instance as wide as the slices it takes, an empty cell where there is
// no instance. Slots that overlap or leave the GPU cannot be
// drawn to scale; then the bar says so.
func Bar(slices int, slots []diagnosis.DrawnSlot, room int, ascii bool) string {
	o := pen{ascii}
	slice := min(maxSlice, room/max(1, slices))
	if slices <= 0 || slice < minSlice {
		return o.cut(fmt.Sprintf("%d slices do not fit here", slices), room)
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
			return o.cut("instances overlap: not drawn", room)
		}
		empty(s.Start)
		inner := s.Size*slice - 2
		b.WriteString("[" + pad(o.slotLabel(s, inner), inner) + "]")
		at = s.Start + s.Size
	}
	empty(slices)
	return b.String()
}

func sorted(slots []diagnosis.DrawnSlot) []diagnosis.DrawnSlot {
	return slices.SortedStableFunc(slices.Values(slots), func(a, b diagnosis.DrawnSlot) int { return a.Start - b.Start })
}

// slotLabel is the longest label that fits: profile and ns/pod, profile and
// pod, profile and the start of the pod's name, profile.
func (o pen) slotLabel(s diagnosis.DrawnSlot, room int) string {
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
	dot := "·"
	if o.ascii {
		dot = ":"
	}
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

// pen draws in Unicode, or in ASCII alone.
type pen struct{ ascii bool }

func (o pen) clean(s string) string { return Clean(s, o.ascii) }

// cut shortens s to n columns, marking that it did.
func (o pen) cut(s string, n int) string {
	mark := "…"
	if o.ascii {
		mark = "~"
	}
	return ansi.Truncate(s, max(0, n), mark)
}

func width(s string) int { return ansi.StringWidth(s) }

// pad fills s up to n columns; a longer s is left as it is.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-width(s))) }
