package wording

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Price is what a fix brings and costs, and how its kind turned out before, in one line.
func Price(f diagnosis.FixSummary) string {
	price := fmt.Sprintf("runs %s · stops %s · takes %s · risk %s", Runs(f), Stops(f), Takes(f), f.Risk)
	if f.Record != nil {
		price += " · " + f.Record.String()
	}
	return price
}

// Runs counts the incident's pods that run afterwards; "–" where that is not known.
func Runs(f diagnosis.FixSummary) string {
	if f.Effect == nil {
		return "–"
	}
	return fmt.Sprintf("%d of %d", f.Effect.Runs, f.Effect.Of)
}

// Stops counts the pods that stop in any way; "+" where there may be others.
func Stops(f diagnosis.FixSummary) string {
	n, more := f.EvictionCount+f.RestartCount, ""
	if f.Cost.RestartsKnown != nil && !*f.Cost.RestartsKnown {
		more = "+"
	}
	switch {
	case n == 0 && more == "":
		return "nobody"
	case n == 1 && more == "":
		return "1 pod"
	}
	return fmt.Sprintf("%d%s pods", n, more)
}

// Takes is how long a fix takes, in minutes; "–" where people carry it out.
func Takes(f diagnosis.FixSummary) string {
	switch m := f.Cost.Minutes; {
	case m > 0:
		return fmt.Sprintf("~%d min", m)
	case f.Automatic:
		return "<1 min"
	}
	return "–"
}

// Held says of a fix why it is not carried out for people; empty where it is.
func Held(f diagnosis.FixSummary) string {
	switch {
	case f.Held != "" && f.Automatic:
		return "held back now: " + f.Held
	case f.Held != "":
		return "refused now: " + f.Held
	case !f.Automatic:
		return "by hand"
	}
	return ""
}

// Stopped names who stops by a fix; empty where nobody does.
func Stopped(f diagnosis.FixSummary) string {
	return some(slices.Concat(f.Cost.Evictions, f.Cost.Restarts), f.EvictionCount+f.RestartCount)
}

// ThenWait names who is stopped and finds no place again.
func ThenWait(f diagnosis.FixSummary) string {
	if f.Effect == nil {
		return ""
	}
	return some(f.Effect.ThenWait, len(f.Effect.ThenWait))
}

// someNames are named; the others are counted.
const someNames = 3

func some(pods []diagnosis.PodName, all int) string {
	var names []string
	for _, p := range pods[:min(len(pods), someNames)] {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if rest := all - len(names); rest > 0 && len(names) > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), rest)
	}
	return strings.Join(names, ", ")
}

// Offered says of a fix that one may say yes to it where people are told: it is carried out
// for them, by no means refused now, and leaves not as many waiting as before.
func Offered(f diagnosis.FixSummary) bool {
	return f.Automatic && f.Held == "" && hash.MatchString(f.Plan) && f.Class != diagnosis.MusicalChair
}

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// NoFix is what stands where fixes would.
func NoFix(d diagnosis.Summary) string {
	if d.Alike != "" {
		return "The same keeps it waiting as " + d.Alike + ": its fixes stand there."
	}
	return "No fix is known."
}
