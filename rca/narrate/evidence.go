package narrate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/drawing"
)

// How much of a diagnosis a model is given: the less it reads, the less anybody can tell it.
const (
	mostCauses = 4
	mostFixes  = 3
	maxText    = 400 // characters of one
)

// item is one piece of evidence.
type item struct {
	id    string // E1, E2, …
	ref   string // what people know it by
	text  string // as the model reads it
	offer bool   // it says what a fix would do
}

// evidence is all that a model is given, and all that it may say something about.
type evidence struct {
	items []item
	names names
}

// evidenceOf is what code concludes in a diagnosis. The facts behind a cause are left out, for
// they quote what tenants and programs write, and so is what the team said before: people see
// both as they are, and nobody can write to a model in them.
func evidenceOf(d diagnosis.Summary) evidence {
	e := evidence{names: namesOf(d)}
	e.add("the finding", false, d.Headline)
	e.add("the finding", false, waiting(d))
	for _, c := range d.Causes[:min(mostCauses, len(d.Causes))] {
		where := ""
		if c.NodeCount > 0 {
			where = fmt.Sprintf("; on %d %s", c.NodeCount, plural(c.NodeCount, "node"))
		}
		e.add(string(c.ID), false, fmt.Sprintf("cause %s, %s: %s%s", c.ID, c.Certainty, c.Says, where))
	}
	for _, f := range d.Fixes[:min(mostFixes, len(d.Fixes))] {
		e.add(fmt.Sprintf("fix %d", f.ID), true, fix(f))
	}
	return e
}

// add makes a text harmless to read: on one line, without secrets, names of tenants covered,
// and no longer than it has to be.
func (e *evidence) add(ref string, offer bool, text string) {
	text = strings.Join(strings.Fields(drawing.Clean(strings.ToValidUTF8(text, "\uFFFD"), false)), " ")
	if text == "" {
		return
	}
	text = shortened(e.names.cover(redact(text)), maxText)
	e.items = append(e.items, item{fmt.Sprintf("E%d", len(e.items)+1), ref, text, offer})
}

func waiting(d diagnosis.Summary) string {
	var wants []string
	for _, c := range d.Claims {
		wants = append(wants, fmt.Sprintf("%d × %s", c.Count, c.Class))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Requests)) {
		wants = append(wants, d.Requests[name]+" × "+name)
	}
	return fmt.Sprintf("%s %s: %d %s waiting; each wants %s", d.Workload.Kind, strings.TrimPrefix(d.Workload.Namespace+"/"+d.Workload.Name, "/"), d.Pods.Waiting, plural(d.Pods.Waiting, "pod"), strings.Join(wants, ", "))
}

func fix(f diagnosis.FixSummary) string {
	stops := f.EvictionCount + f.RestartCount
	says := fmt.Sprintf("fix %d: %s; risk %s; stops %d %s; takes about %d min", f.ID, f.Title, f.Risk, stops, plural(stops, "pod"), f.Cost.Minutes)
	if f.Effect != nil {
		says += fmt.Sprintf("; %d of %d pods run afterwards", f.Effect.Runs, f.Effect.Of)
	}
	if f.Held != "" {
		says += "; held back: " + f.Held
	}
	return fmt.Sprintf("%s; %s: %s", says, f.Proof.Verdict, f.Proof.Why)
}

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// of is the piece with an id.
func (e evidence) of(id string) (item, bool) {
	i := slices.IndexFunc(e.items, func(i item) bool { return i.id == id })
	if i < 0 {
		return item{}, false
	}
	return e.items[i], true
}

func (e evidence) ids() (out []string) {
	for _, i := range e.items {
		out = append(out, i.id)
	}
	return out
}

// sum tells what would be worded from anything else.
func (e evidence) sum() string {
	texts := slices.Clone(e.names.all)
	for _, i := range e.items {
		texts = append(texts, i.ref, i.text)
	}
	body, err := json.Marshal(texts)
	if err != nil {
		panic(err) // they are texts
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}
