package kubectl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/wording"
)

// What the API server takes of an Event, in bytes:
// https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis/core/validation/events.go
const (
	maxNote     = 1024
	maxInstance = 128
	// most is of one part of a note, so that a tenant's long names leave the others room.
	most = 300
)

// note is a finding on one line: what waits and since when, why, the best fix and what it
// costs, and the next command, which is never cut. Of more pods than are told it says how
// many are not.
func note(d *diagnosis.Summary, told int) string {
	parts := []string{part(d.Headline)}
	if len(d.Causes) > 0 {
		c := d.Causes[0]
		parts = append(parts, part(fmt.Sprintf("%s (%s): %s", c.ID, c.Certainty, c.Says)))
	}
	next := "kubectl unpend show " + d.Incident
	if len(d.Fixes) > 0 {
		f := d.Fixes[0]
		parts = append(parts, part(fmt.Sprintf("Fix %d, %s, %s: %s", f.ID, f.Proof.Verdict, wording.Bill(f), f.Title)))
		if wording.Offered(f) {
			next = fmt.Sprintf("kubectl unpend approve %s#%d", d.Incident, f.ID)
		}
	}
	if left := d.Pods.Waiting - told; left > 0 {
		parts = append(parts, fmt.Sprintf("%d more of it are not told one by one", left))
	}
	return line(parts, next)
}

// line joins parts, and ends with the next command.
func line(parts []string, next string) string {
	end := ". Next: " + wording.Clean(next)
	return fit(strings.Join(parts, ". "), maxNote-len(end)) + end
}

func part(s string) string { return fit(wording.Clean(s), most) }

// fit is a text of at most n bytes, marked where it was cut.
func fit(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
