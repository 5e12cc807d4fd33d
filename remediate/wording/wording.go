// Package wording says what is in a proposal, in the same words in every place that people
// are told in. How it looks there, and what has to be escaped, is the place's own.
//
// Texts of the cluster come out as they are: the place cleans each with Clean.
package wording

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/drawing"
	"github.com/unpend/unpend/remediate/notice"
)

// Clean is a text of the cluster on one line, without what cannot be seen.
func Clean(s string) string { return drawing.Clean(s, false) }

// Length counts as browsers and Java do: in units of UTF-16.
func Length(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// Fit is a text of at most n characters, marked where it was cut.
func Fit(s string, n int) string {
	if Length(s) <= n {
		return s
	}
	room, at := n-1, 0
	for i, r := range s {
		if room -= max(1, utf16.RuneLen(r)); room < 0 {
			break
		}
		at = i + len(string(r))
	}
	return s[:at] + "…"
}

// Headline is who waits and for what; of an incident that is over it says so first.
func Headline(p notice.Proposal) string {
	text := "incident " + p.Incident
	if p.Finding != nil && strings.TrimSpace(Clean(p.Finding.Headline)) != "" {
		text = p.Finding.Headline
	}
	if !p.Resolved.IsZero() {
		return "✔ Resolved: " + text
	}
	return text
}

// Waiting is who waits.
func Waiting(d diagnosis.Summary) string {
	who := strings.TrimPrefix(d.Workload.Namespace+"/"+d.Workload.Name, "/") + " (" + d.Workload.Kind + ")"
	if d.Pods.Waiting == 1 {
		return who + ": 1 pod waits"
	}
	return fmt.Sprintf("%s: %d pods wait", who, d.Pods.Waiting)
}

// Wants lists devices before CPU and memory.
func Wants(d diagnosis.Summary) string {
	var devices, others []string
	for _, c := range d.Claims {
		count := "all"
		if c.Count > 0 {
			count = fmt.Sprint(c.Count)
		}
		devices = append(devices, strings.TrimSuffix(count+" × "+cmp.Or(c.Class, "devices of "+c.Claim), " × "))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Requests)) {
		if strings.Contains(name, "/") {
			devices = append(devices, d.Requests[name]+" × "+name)
		} else {
			others = append(others, name+" "+d.Requests[name])
		}
	}
	return cmp.Or(strings.Join(append(devices, others...), ", "), "no particular resource")
}

// Taken says who sees to an incident; empty where nobody has said so, or nobody has to.
func Taken(p notice.Proposal) string {
	if p.Taken == nil || !p.Resolved.IsZero() {
		return ""
	}
	return fmt.Sprintf("acknowledged in %s by %s", p.Taken.In, cmp.Or(Fit(Clean(p.Taken.By), longName), "somebody"))
}

// Snoozed says who has their message in Slack left alone, and until when; empty where nobody
// does, or somebody has decided meanwhile.
func Snoozed(p notice.Proposal) string {
	if p.Snoozed == nil || !p.Undecided() {
		return ""
	}
	return fmt.Sprintf("snoozed in Slack by %s until %s", cmp.Or(Fit(Clean(p.Snoozed.By), longName), "somebody"), p.Snoozed.Until.UTC().Format("2006-01-02 15:04 UTC"))
}

// longName is how much of a person's name is told.
const longName = 80

// verbs are how a plan's state is told.
var verbs = map[string]string{
	notice.Pending: "is recorded, and nobody has decided", notice.Queued: "waits for a guard-rail", notice.Running: "is being carried out", notice.Undoing: "is being taken back",
	notice.Succeeded: "is done", notice.Failed: "has failed, and was taken back", notice.Stopped: "was stopped, and taken back", notice.Parked: "left its node cordoned, on purpose: somebody has to come",
	notice.Stale: "was stale: nothing was written", notice.Expired: "has expired: nobody decided in time", notice.Refused: "was refused", notice.Rejected: "was rejected", notice.Superseded: "gave way to a newer one",
}

// Standing tells where a plan stands, and what it does there: "step 3/9" and the step, "done
// in 4m12s" and the fix.
func Standing(n notice.Notice) (where, what string) {
	switch {
	case n.What == notice.Running && n.Progress != "":
		return "step " + n.Progress, n.Step
	case n.What == notice.Succeeded && !n.Began.IsZero():
		return "done in " + n.Since.Sub(n.Began).Round(time.Second).String(), n.Title
	}
	return fmt.Sprintf("plan %.12s %s", n.Plan, cmp.Or(verbs[n.What], n.What)), n.Title
}
