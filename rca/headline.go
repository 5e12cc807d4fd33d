package rca

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/fixes"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// maxHeadline is the length of a headline in characters: it fits a phone's preview.
const maxHeadline = 80

// headline says who waits, how long, for what, and why.
func headline(c *causes.Case, told []diagnosis.Cause) string {
	why := ""
	if len(told) > 0 {
		why = whyWord + c.Headline(told[0].ID)
		if told[0].ID == diagnosis.SchedulerRefused { // whose word it is
			why = whyWord + visible(c.Queue.SchedulerName()) + " refuses"
		}
		if told[0].ID == diagnosis.GPUsInUse && causes.HeldByOwn(c, told[0].ID) {
			why = whyWord + "GPUs held by its own pods"
		}
	}
	return titled(c.Incident, c.Cluster.State.Now, needs(c), why)
}

// What is needed stands between these, and why it does not come behind the second.
const needsWord, whyWord = ": needs ", ", "

// So many characters of a name, and of what is needed, are left in any case.
const leastName, leastNeeds = 12, 12

// titled is the headline of an incident: what it needs, and why it does not get it. Where that is too long, first the name
// of who waits gives way, then what is needed, and the reason last.
func titled(i incident.Incident, now time.Time, needs, why string) string {
	name, needs, why := visible(i.Workload.Namespace+"/"+i.Workload.Name), visible(needs), visible(why)
	since := ""
	if !i.Since.IsZero() { // a dump may not tell
		since = " " + view.Age(now.Sub(i.Since))
	}
	waits := " waits" + since + needsWord
	room := maxHeadline - utf8.RuneCountInString(waits) - utf8.RuneCountInString(why)
	if left := room - utf8.RuneCountInString(needs); left < utf8.RuneCountInString(name) {
		name = view.Cut(name, max(left, leastName))
	}
	needs = view.Cut(needs, max(room-utf8.RuneCountInString(name), leastNeeds))
	return view.Cut(name+waits+needs+why, maxHeadline)
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

// needs is what the pod asks for: devices where it asks any, else what else a machine has.
func needs(c *causes.Case) string {
	devices := slices.ContainsFunc(slices.Collect(maps.Keys(c.Wants)), func(name corev1.ResourceName) bool { return incident.OfDevices(string(name)) })
	var parts []string
	for _, a := range c.Asks {
		parts = append(parts, fmt.Sprintf("%d×%s", a.Count, a.Short()))
	}
	parts = append(parts, c.Claims.Needs()...)
	if len(parts) == 0 {
		for name, q := range c.Wants {
			if !devices || incident.OfDevices(string(name)) {
				parts = append(parts, q.String()+" "+string(name))
			}
		}
		slices.Sort(parts)
	}
	if len(parts) == 0 {
		return "a node"
	}
	return strings.Join(parts, "+")
}

// drawing shows the GPU that the best fix re-makes, else the first GPU of the root cause's
// first node that is not sick, if any.
func drawing(c *causes.Case, causes []diagnosis.Cause, fixes fixes.Found) *diagnosis.Drawing {
	if n, g, layout, ok := fixes.Redrawn(); ok {
		return draw(c, n, g, layout)
	}
	if len(causes) == 0 || !slices.ContainsFunc(c.Asks, func(a view.Ask) bool { return a.Profile != "" }) {
		return nil
	}
	for _, name := range causes[0].Nodes {
		if n := c.Node(name); n != nil && len(n.GPUs) > 0 {
			well := max(0, slices.IndexFunc(n.GPUs, func(g placement.GPU) bool { return !g.Sick }))
			return draw(c, n, n.GPUs[well], nil)
		}
	}
	return nil
}

func draw(c *causes.Case, n *view.Node, g placement.GPU, after placement.Layout) *diagnosis.Drawing {
	d := &diagnosis.Drawing{Node: n.Name, GPU: g.Index, Product: g.Product, Slices: g.Grid.Slices(), Before: []diagnosis.DrawnSlot{}}
	for _, s := range g.Slots {
		d.Before = append(d.Before, drawnSlot(s))
	}
	if slots, ok := g.Grid.Place(after); ok && after != nil {
		for _, s := range slots {
			d.After = append(d.After, drawnSlot(s))
		}
		slices.SortFunc(d.After, func(a, b diagnosis.DrawnSlot) int { return a.Start - b.Start })
	}
	for _, a := range c.Asks {
		if p, ok := g.Grid.Profile(a.Profile); ok && a.Profile != "" {
			if g.Sick {
				d.Note = fmt.Sprintf("GPU %d is unhealthy: it has room for nobody", g.Index)
				break
			}
			fit := g.Fit(a.Profile)
			d.Note = fmt.Sprintf("%d of %d slices unheld, %s needs %s", fit.Free, d.Slices, p.Name, view.StartsText(p))
		}
	}
	return d
}

func drawnSlot(s placement.Slot) diagnosis.DrawnSlot {
	out := diagnosis.DrawnSlot{Profile: s.Profile, Start: s.Start, Size: s.Size}
	switch {
	case s.Unknown:
		out.Holder = "?"
	case s.Held:
		out.Holder = s.Holder.Namespace + "/" + s.Holder.Pod
	}
	return out
}
