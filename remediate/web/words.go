package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// clean is a text of the cluster on one line, without what cannot be seen or turns the
// direction of text.
func clean(s string) string { return wording.Clean(s) }

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// shortPlan is a plan's hash as people compare it.
func shortPlan(hash string) string { return fmt.Sprintf("%.12s", hash) }

func podName(p diagnosis.PodName) string {
	return clean(strings.TrimPrefix(p.Namespace+"/"+p.Name, "/"))
}

// moment is a time and how long ago that is.
type moment struct {
	Stamp string // for machines
	Text  string // for people
	Ago   string
}

func at(t, now time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return moment{t.UTC().Format(time.RFC3339), utc(t), ago(now.Sub(t))}
}

// ago is a time span in the two words that matter.
func ago(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// sentence is a text of ours as a sentence begins.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// headline is who waits and for what.
func headline(p notice.Proposal) string {
	if p.Finding != nil {
		if h := strings.TrimSpace(clean(p.Finding.Headline)); h != "" {
			return h
		}
	}
	return "incident " + clean(p.Incident)
}

// states say where a plan stands.
var states = map[string]string{
	notice.Pending: "recorded, nobody has decided yet", notice.Queued: "approved, waits for a guard-rail", notice.Running: "is being carried out", notice.Undoing: "is being taken back",
	notice.Succeeded: "done", notice.Failed: "failed, and was taken back", notice.Stopped: "was stopped, and taken back", notice.Parked: "left its node cordoned on purpose: somebody has to come",
	notice.Stale: "was stale: nothing was written", notice.Expired: "expired: nobody decided in time", notice.Refused: "was refused", notice.Rejected: "was rejected", notice.Superseded: "gave way to a newer plan",
}
