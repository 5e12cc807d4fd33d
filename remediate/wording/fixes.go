package wording

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Price is what a fix brings and costs, and how its kind turned out before, in one line; what is
// not known is left out of it, but who stops.
func Price(f diagnosis.FixSummary) string {
	var parts []string
	if f.Effect != nil {
		brings := Runs(f) + " pods run"
		if f.Effect.Of == 1 {
			brings = Runs(f) + " pod runs"
		}
		parts = append(parts, brings)
	}
	parts = append(parts, "stops "+Stops(f))
	if takes := Takes(f); takes != dash {
		parts = append(parts, "takes "+takes)
	}
	parts = append(parts, "risk "+string(f.Risk))
	if f.Record != nil {
		parts = append(parts, f.Record.String())
	}
	return strings.Join(parts, " · ")
}

// Bill is the price, and what becomes of who stops, in one line.
func Bill(f diagnosis.FixSummary) string {
	if fate := Fate(f); fate != "" {
		return Price(f) + "; " + fate
	}
	return Price(f)
}

// dash stands where something is not known.
const dash = "–"

// Runs counts the incident's pods that run afterwards; "–" where that is not known.
func Runs(f diagnosis.FixSummary) string {
	if f.Effect == nil {
		return dash
	}
	return fmt.Sprintf("%d of %d", f.Effect.Runs, f.Effect.Of)
}

// Stops counts the pods that stop in any way, also where there may be others.
func Stops(f diagnosis.FixSummary) string {
	n, others := f.EvictionCount+f.RestartCount, f.Cost.RestartsKnown != nil && !*f.Cost.RestartsKnown
	switch {
	case n == 0 && others:
		return "pods that nobody can name"
	case n == 0:
		return "nobody"
	case others:
		return fmt.Sprintf("at least %s", pods(n))
	}
	return pods(n)
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// Takes is how long a fix takes, in minutes; "–" where people carry it out.
func Takes(f diagnosis.FixSummary) string {
	switch m := f.Cost.Minutes; {
	case m > 0:
		return fmt.Sprintf("~%d min", m)
	case f.Automatic:
		return "<1 min"
	}
	return dash
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

// Fate is what becomes of who stops; empty where nobody does, or nobody knows.
func Fate(f diagnosis.FixSummary) string {
	all := f.EvictionCount + f.RestartCount
	wait := 0
	if f.Effect != nil {
		wait = len(f.Effect.ThenWait)
	}
	switch {
	case all == 0:
		return ""
	case f.Proof.Victims == diagnosis.VictimsGone && all == 1:
		return "it never comes back: nothing makes it again"
	case f.Proof.Victims == diagnosis.VictimsGone:
		return "not all come back: nothing makes some of them again"
	case wait > 0 && all == 1:
		return "it then waits"
	case wait == all:
		return "all of them then wait"
	case wait == 1:
		return "1 of them then waits"
	case wait > 0:
		return fmt.Sprintf("%d of them then wait", wait)
	case f.Proof.Victims == diagnosis.VictimsLand && all == 1:
		return "it runs again afterwards"
	case f.Proof.Victims == diagnosis.VictimsLand && f.RestartCount == 0:
		return "all run again afterwards"
	}
	return ""
}

// ThenWait names who is stopped and finds no place again; empty where all are that stop.
func ThenWait(f diagnosis.FixSummary) string {
	if f.Effect == nil || len(f.Effect.ThenWait) == f.EvictionCount+f.RestartCount {
		return ""
	}
	return some(f.Effect.ThenWait, len(f.Effect.ThenWait))
}

// someNames are named; the others are counted.
const someNames = 3

func some(who []diagnosis.PodName, all int) string {
	var names []string
	for _, p := range who[:min(len(who), someNames)] {
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
