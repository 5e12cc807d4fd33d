package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// The drawing of a GPU is so many units wide, and as many high with its scale.
const (
	drawnWidth  = 400
	drawnHeight = 64
	barHeight   = 46
)

// drawingView is the one GPU that matters, before and after a fix.
type drawingView struct {
	GPU, Product, Note string
	Before, After      *bar
	AfterWhat          string
}

// bar is a GPU's memory, to scale.
type bar struct {
	Width, Height, Bar int
	Says               string // for who cannot see it
	Cells              []cell
	Ticks              []tick
	List               []string
	Broken             bool // instances overlap, or leave the GPU: not drawn
}

type cell struct {
	X, W, Middle int
	Kind         string // free, idle, held, unknown
	Profile      string
	Holder       string // as much of it as there is room for
	Title        string
}

type tick struct {
	X int
	N int
}

func drawingOf(d diagnosis.Summary) *drawingView {
	g := d.Drawing
	if g == nil || g.Slices <= 0 || g.Slices > 64 {
		return nil
	}
	v := &drawingView{GPU: clean(fmt.Sprintf("%s/GPU %d", g.Node, g.GPU)), Product: clean(g.Product), Note: clean(g.Note), Before: barOf(g.Slices, g.Before, "now")}
	if len(g.After) > 0 {
		v.AfterWhat = "After"
		for _, f := range d.Fixes {
			if f.Proof.Node == g.Node && slices.ContainsFunc(f.Kinds, func(k diagnosis.FixKind) bool { return k == diagnosis.RepartitionGPU }) {
				v.AfterWhat = fmt.Sprintf("After fix %d", f.ID)
				break
			}
		}
		v.After = barOf(g.Slices, g.After, strings.ToLower(v.AfterWhat))
	}
	return v
}

func barOf(slots int, drawn []diagnosis.DrawnSlot, when string) *bar {
	b := &bar{Width: drawnWidth, Height: drawnHeight, Bar: barHeight}
	x := func(slice int) int { return slice * drawnWidth / slots }
	drawn = slices.Clone(drawn)
	slices.SortStableFunc(drawn, func(a, b diagnosis.DrawnSlot) int { return a.Start - b.Start })
	at := 0
	empty := func(to int) {
		for ; at < to; at++ {
			b.Cells = append(b.Cells, cell{X: x(at), W: x(at+1) - x(at), Kind: "free", Title: fmt.Sprintf("memory slice %d: no instance", at)})
		}
	}
	for _, s := range drawn {
		if s.Start < at || s.Size <= 0 || s.Start+s.Size > slots {
			b.Broken = true
			break
		}
		empty(s.Start)
		b.Cells = append(b.Cells, cellOf(s, x(s.Start), x(s.Start+s.Size)))
		at = s.Start + s.Size
	}
	if empty(slots); b.Broken {
		b.Cells = nil
	}
	for n := range slots {
		b.Ticks = append(b.Ticks, tick{(x(n) + x(n+1)) / 2, n})
	}
	for _, s := range drawn {
		b.List = append(b.List, fmt.Sprintf("%s: %s, %s", clean(s.Profile), where(s), heldBy(s)))
	}
	b.Says = fmt.Sprintf("%d memory slices, %s: %s", slots, when, cmp.Or(strings.Join(b.List, "; "), "no instance"))
	return b
}

func where(s diagnosis.DrawnSlot) string {
	if s.Size == 1 {
		return fmt.Sprintf("slice %d", s.Start)
	}
	return fmt.Sprintf("slices %d–%d", s.Start, s.Start+s.Size-1)
}

func heldBy(s diagnosis.DrawnSlot) string {
	switch s.Holder {
	case "":
		return "held by nobody"
	case diagnosis.UnknownHolder:
		return "held by somebody who could not be told"
	}
	return "held by " + clean(s.Holder)
}

func cellOf(s diagnosis.DrawnSlot, from, to int) cell {
	c := cell{X: from, W: to - from, Middle: (from + to) / 2, Kind: "held", Title: clean(s.Profile) + ", " + where(s) + ", " + heldBy(s)}
	const letter = 6 // units that one takes
	room := (to - from - 6) / letter
	profile, _, _ := strings.Cut(clean(s.Profile), ".")
	if room >= len(clean(s.Profile)) {
		profile = clean(s.Profile)
	}
	c.Profile = profile
	switch s.Holder {
	case "":
		c.Kind = "idle"
	case diagnosis.UnknownHolder:
		c.Kind, c.Holder = "unknown", "?"
	default:
		holder := clean(s.Holder)
		if _, pod, ok := strings.Cut(holder, "/"); ok && len(holder) > room {
			holder = pod
		}
		c.Holder = firsts(holder, room)
	}
	return c
}

// firsts is as many characters of a text as there is room for.
func firsts(s string, room int) string {
	r := []rune(s)
	if len(r) <= room {
		return s
	}
	return string(r[:max(1, room-1)]) + "…"
}
