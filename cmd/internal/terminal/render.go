package terminal

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/unpend/unpend/rca/diagnosis"
)

// The lines a part of a finding may take; the fixes get what the others leave.
const (
	maxWantsLines  = 2
	maxWhyLines    = 8
	maxUnreadLines = 2
	maxFixesShown  = 3
)

// Render writes one finding in at most 25 lines: who waits and for what, why,
// the GPU that matters, the fixes with their cost, and the next command. The
// error is w's.
func Render(w io.Writer, d diagnosis.Diagnosis, o Options) error {
	lines := append(o.head(d), o.why(d)...)
	if d.Drawing != nil {
		for _, l := range o.drawing(*d.Drawing, o.columns()-2, afterLabel(d)) {
			lines = append(lines, "  "+l)
		}
	}
	tail := append(o.seenBefore(d), o.unread(d)...)
	tail = append(tail, o.next(d))
	lines = append(lines, o.fixes(d.Fixes, maxLines-len(lines)-len(tail))...)
	lines = append(lines, tail...)
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write finding: %w", err)
	}
	return nil
}

// refused says of pods that they have Failed and wait for nothing: the kubelet turned
// them away.
func refused(d diagnosis.Diagnosis) bool {
	by := []diagnosis.CauseID{diagnosis.TopologyAlignmentRefused, diagnosis.SharedRequestTooLarge, diagnosis.KubeletAdmissionRefused}
	return len(d.Causes) > 0 && slices.Contains(by, d.Causes[0].ID)
}

// head is who waits, since when, and for what.
func (o Options) head(d diagnosis.Diagnosis) []string {
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

func (o Options) workload(d diagnosis.Diagnosis) string {
	return strings.TrimPrefix(o.clean(d.Workload.Namespace)+"/"+o.clean(d.Workload.Name), "/")
}

// wants lists devices before CPU and memory.
func (o Options) wants(requests map[string]string, claims []diagnosis.ClaimedDevices) string {
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
func (o Options) claimed(c diagnosis.ClaimedDevices) string {
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
func (o Options) seenBefore(d diagnosis.Diagnosis) []string {
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

func (o Options) unread(d diagnosis.Diagnosis) []string {
	var out []string
	for i, u := range d.Unread {
		if left := len(d.Unread) - i; i == maxUnreadLines-1 && left > 1 {
			return append(out, fmt.Sprintf("unread: %d more, see -o json", left))
		}
		out = append(out, o.cut("unread: "+o.clean(u), o.columns()))
	}
	return out
}

// next is the one command that leads on; it is never shortened.
func (o Options) next(d diagnosis.Diagnosis) string {
	command, hint := "", ""
	switch {
	case len(d.Fixes) > 0 && d.Fixes[0].Automatic && d.Fixes[0].Held == "":
		command = strings.TrimSpace(fmt.Sprintf("kubectl unpend approve %s#%d %s", o.clean(d.Incident), d.Fixes[0].ID, o.Approve))
		hint = "   (dry run: add --dry-run)"
	case len(d.Fixes) > 0 && d.Fixes[0].Held != "":
		command = "kubectl unpend status"
		hint = "   (what the guard-rails say)"
	case len(d.Fixes) > 0 && len(d.Fixes[0].Commands) > 0:
		command = clean(d.Fixes[0].Commands[0], false)
	default:
		command = fmt.Sprintf("kubectl unpend why %s/%s -n %s -o json",
			strings.ToLower(o.clean(d.Workload.Kind)), o.clean(d.Workload.Name), o.clean(d.Workload.Namespace))
	}
	return "Next: " + o.tint(lipgloss.Cyan, command) + o.faint(hint)
}
