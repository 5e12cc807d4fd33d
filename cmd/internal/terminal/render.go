package terminal

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
)

// The lines a part of a finding may take; the fixes get what the others leave.
const (
	maxWantsLines  = 2
	maxWhyLines    = 8
	narrowWhyLines = 5 // where the fixes need more lines
	maxFixesShown  = 3
	maxUnreadShown = 3
)

// Render writes one finding in at most 25 lines: who waits and for what, why, the GPU that
// matters, the fixes with their cost, and the next command. What is too long is left out as
// a whole and counted, never cut in the middle of a caveat; the first fix, and what of the
// unread bears most on the finding, always stand. The error is w's.
func Render(w io.Writer, d diagnosis.Diagnosis, o Options) error {
	f := findingText{o}
	fixes, unread := f.allFixes(d), f.unread(d)
	room := maxLines - len(f.head(d)) - 1 - len(fixes[0]) - 1 // the next command, the head of the fixes
	if len(unread) > 0 {
		room -= len(unread[0])
	}
	if len(fixes) > 1 {
		room-- // to say that there are more
	}
	if len(unread) > 1 {
		room--
	}
	why := reasons{style: o.style}
	why.less = max(0, min(why.whyLines()-2, why.whyLines()-room))
	lines := append(f.head(d), why.why(d)...)
	room -= len(lines) - len(f.head(d))
	take := func(block []string) bool {
		if len(block) > room {
			return false
		}
		room -= len(block)
		return true
	}
	if picture := f.picture(d); take(picture) {
		lines = append(lines, picture...)
	}
	seen := f.seenBefore(d)
	if !take(seen) {
		seen = nil
	}
	shown := 1
	for shown < min(len(fixes), maxFixesShown) && take(fixes[shown]) {
		shown++
	}
	lines = append(append(lines, fixText{o.style}.fixesHead()), slices.Concat(fixes[:shown]...)...)
	if n := len(fixes) - shown; n > 0 {
		lines = append(lines, "  and "+more(n))
	}
	lines = append(lines, seen...)
	read := min(1, len(unread))
	for read < min(len(unread), maxUnreadShown) && take(unread[read]) {
		read++
	}
	lines = append(lines, slices.Concat(unread[:read]...)...)
	if n := len(unread) - read; n > 0 {
		lines = append(lines, "unread: "+more(n))
	}
	lines = append(lines, f.next(d))
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write finding: %w", err)
	}
	return nil
}

// findingText tells one finding.
type findingText struct{ Options }

// allFixes are the lines of each fix; one that says so where there is none.
func (o findingText) allFixes(d diagnosis.Diagnosis) [][]string {
	if len(d.Fixes) == 0 {
		return [][]string{{"  none is known"}}
	}
	out := make([][]string, len(d.Fixes))
	for i, f := range d.Fixes {
		out[i] = fixText{o.style}.fix(f, i == 0)
	}
	return out
}

// picture is the GPU that matters, with what its marks mean.
func (o findingText) picture(d diagnosis.Diagnosis) []string {
	if d.Drawing == nil {
		return nil
	}
	var out []string
	for _, l := range o.drawing(*d.Drawing, o.columns()-2, afterLabel(d)) {
		out = append(out, "  "+l)
	}
	if !o.NoLegend {
		out = append(out, o.faint("  "+o.cut(o.legend(*d.Drawing), o.columns()-2)))
	}
	return out
}

// legend says what the marks of a drawing mean.
func (o findingText) legend(d diagnosis.Drawing) string {
	dot := o.glyph("·", ":")
	parts := []string{"[1g" + dot + "pod] held by that pod", "[1g ] idle", "[ ] no instance"}
	if slices.ContainsFunc(d.Before, func(s diagnosis.DrawnSlot) bool { return s.Holder == diagnosis.UnknownHolder }) {
		parts = append(parts, "[1g"+dot+"?] nobody knows")
	}
	return strings.Join(parts, ", ")
}

// refused says of pods that they have Failed and wait for nothing: the kubelet turned
// them away.
func refused(d diagnosis.Diagnosis) bool {
	by := []diagnosis.CauseID{diagnosis.TopologyAlignmentRefused, diagnosis.SharedRequestTooLarge, diagnosis.KubeletAdmissionRefused}
	return len(d.Causes) > 0 && slices.Contains(by, d.Causes[0].ID)
}

// head is who waits, since when, and for what.
func (o findingText) head(d diagnosis.Diagnosis) []string {
	n := o.columns()
	right := "incident " + o.clean(d.Incident)
	state := "Pending"
	if refused(d) {
		state = "Refused"
	}
	if d.Pods.Waiting != 1 {
		state = fmt.Sprintf("%d pods %s", d.Pods.Waiting, state)
	}
	if a := o.age(d.Pods.Since); a != "" {
		state += " " + a
	}
	name := o.workload(d) + " (" + o.clean(d.Workload.Kind) + ")"
	name = o.cut(name, n-width(state)-width(right)-6)
	lines := []string{o.ends(o.bold(name)+"   "+state, right, n)}
	margin := "  wants  "
	for _, l := range o.wrap(o.wants(d.Requests, d.Claims), n-width(margin), maxWantsLines) {
		lines = append(lines, margin+l)
		margin = strings.Repeat(" ", width(margin))
	}
	return lines
}

func (o style) workload(d diagnosis.Diagnosis) string {
	return strings.TrimPrefix(o.clean(d.Workload.Namespace)+"/"+o.clean(d.Workload.Name), "/")
}

// wants lists devices before CPU and memory.
func (o findingText) wants(requests map[string]string, claims []diagnosis.ClaimedDevices) string {
	var devices, others []string
	for _, c := range claims {
		devices = append(devices, o.claimed(c))
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		q := o.clean(requests[name])
		if strings.Contains(name, "/") {
			devices = append(devices, q+" "+o.glyph("×", "x")+" "+o.clean(name))
		} else {
			others = append(others, o.clean(name)+" "+q)
		}
	}
	if all := append(devices, others...); len(all) > 0 {
		return strings.Join(all, ", ")
	}
	return "no particular resource"
}

// claimed is one request of a claim: how many, of which class, and which will do.
func (o findingText) claimed(c diagnosis.ClaimedDevices) string {
	if c.Class == "" {
		return "devices of " + o.clean(c.Claim)
	}
	count := "all"
	if c.Count > 0 {
		count = fmt.Sprint(c.Count)
	}
	text := count + " " + o.glyph("×", "x") + " " + o.clean(c.Class)
	if len(c.Selectors) > 0 {
		text += " with " + o.clean(strings.Join(c.Selectors, " and "))
	}
	if c.Others > 0 {
		text += fmt.Sprintf(" (or %d others)", c.Others)
	}
	return text
}

// age is how long something is ago; empty where nobody knows the time.
func (o Options) age(since time.Time) string {
	if since.IsZero() || o.Now.IsZero() {
		return ""
	}
	d := max(0, o.Now.Sub(since)).Round(time.Second)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// seenBefore is the best passage of what the team has said, and where.
func (o findingText) seenBefore(d diagnosis.Diagnosis) []string {
	if len(d.Knowledge) == 0 {
		return nil
	}
	k := d.Knowledge[0]
	where := o.clean(k.Source)
	if !k.At.IsZero() {
		where += " " + k.At.UTC().Format(time.DateOnly)
	}
	text := fmt.Sprintf("Seen before (%s): %s", where, o.clean(k.Title))
	// The address leads to the rest, but not where it would leave no quote.
	const shortestQuote = 30
	if url := o.clean(k.URL); url != "" && width(text)+width(url)+3+min(width(k.Quote), shortestQuote) <= o.columns() {
		text += " <" + url + ">"
	}
	if k.Quote != "" {
		text += ` "` + o.clean(k.Quote) + `"`
	}
	return []string{o.cut(text, o.columns())}
}

// unread are the lines of what could not be read, a caveat each, none cut.
func (o findingText) unread(d diagnosis.Diagnosis) [][]string {
	out := make([][]string, len(d.Unread))
	for i, u := range d.Unread {
		out[i] = o.indented("unread: ", "        ", o.fold(o.clean(u), o.columns()-len("unread: ")))
	}
	return out
}
