package rca

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/unpend/unpend/rca/placement"
)

// maxHeadline is the length of a headline in characters: it fits a phone's preview.
const maxHeadline = 80

// headline says who waits, how long, for what, and why.
func headline(c *Case, causes []Cause) string {
	w := c.Incident.Workload
	name := visible(w.Namespace + "/" + w.Name)
	why := ""
	if len(causes) > 0 {
		why = ", " + causes[0].ID.Words()
	}
	since := ""
	if !c.Incident.Since.IsZero() { // a dump may not tell
		since = " " + age(c.world.state.Now.Sub(c.Incident.Since))
	}
	rest := visible(fmt.Sprintf(" waits%s: needs %s%s", since, needs(c), why))
	if room := maxHeadline - utf8.RuneCountInString(rest); room < utf8.RuneCountInString(name) {
		name = cut(name, max(room, 12))
	}
	return cut(name+rest, maxHeadline)
}

// visible takes out what no API server accepts in a name and a dump may have all the
// same: control characters, marks that turn the direction of text, and invisible ones
// but for the joiners of scripts and emoji. A headline goes where nobody escapes it.
func visible(s string) string {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != nonJoiner && r != joiner {
			return -1
		}
		return r
	}, s)
}

// cut shortens to n characters, marking that it did.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// needs is what the pod asks for, GPUs first.
func needs(c *Case) string {
	var parts []string
	for _, a := range c.asks {
		parts = append(parts, fmt.Sprintf("%d×%s", a.count, a.short()))
	}
	parts = append(parts, c.claims.needs()...)
	if len(parts) == 0 {
		for name, q := range c.wants {
			parts = append(parts, q.String()+" "+string(name))
		}
		slices.Sort(parts)
	}
	if len(parts) == 0 {
		return "a node"
	}
	return strings.Join(parts, "+")
}

// searchWords are the words of a diagnosis that past incidents would share.
func searchWords(d Diagnosis) []string {
	var words []string
	for _, c := range d.Causes {
		words = append(words, string(c.ID), c.Says)
	}
	words = append(words, slices.Sorted(maps.Keys(d.Requests))...)
	if d.Drawing != nil {
		words = append(words, d.Drawing.Product)
	}
	return words
}

// drawing shows the GPU that the best fix re-makes, else the first GPU of the
// root cause's first node.
func drawing(c *Case, causes []Cause, fixes Found) *Drawing {
	if n, g, layout, ok := fixes.Redrawn(); ok {
		return draw(c, n, g, layout)
	}
	if len(causes) == 0 || !slices.ContainsFunc(c.asks, func(a ask) bool { return a.profile != "" }) {
		return nil
	}
	for _, name := range causes[0].Nodes {
		if n := c.node(name); n != nil && len(n.gpus) > 0 {
			return draw(c, n, n.gpus[0], nil)
		}
	}
	return nil
}

func draw(c *Case, n *nodeView, g placement.GPU, after placement.Layout) *Drawing {
	d := &Drawing{Node: n.Name, GPU: g.Index, Product: g.Product, Slices: g.Grid.Slices(), Before: []DrawnSlot{}}
	for _, s := range g.Slots {
		d.Before = append(d.Before, drawnSlot(s))
	}
	if slots, ok := g.Grid.Place(after); ok && after != nil {
		for _, s := range slots {
			d.After = append(d.After, drawnSlot(s))
		}
		slices.SortFunc(d.After, func(a, b DrawnSlot) int { return a.Start - b.Start })
	}
	for _, a := range c.asks {
		if p, ok := g.Grid.Profile(a.profile); ok && a.profile != "" {
			fit := g.Fit(a.profile)
			d.Note = fmt.Sprintf("%d of %d slices unheld, %s needs %s", fit.Free, d.Slices, p.Name, startsText(p))
		}
	}
	return d
}

func drawnSlot(s placement.Slot) DrawnSlot {
	out := DrawnSlot{Profile: s.Profile, Start: s.Start, Size: s.Size}
	switch {
	case s.Unknown:
		out.Holder = "?"
	case s.Held:
		out.Holder = s.Holder.Namespace + "/" + s.Holder.Pod
	}
	return out
}
