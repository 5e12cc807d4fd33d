package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// maxFolded bounds the lines of a text that is never cut in practice.
const maxFolded = 400

// Consent is what a person reads before saying yes to a fix.
type Consent struct {
	Cluster  string // context, server, and which cluster that is
	Incident string
	Headline string
	Fix      diagnosis.Fix
	Stops    []Pod // in every way
	Steps    []string
	Rails    string   // what guard-rails say now
	Back     []string // how it is taken back, and what is not
	Undo     []string // commands that undo it once it is done
}

// consentText tells what somebody agrees to.
type consentText struct{ Options }

// Consents writes what there is to consent to. Nothing in it is cut.
func Consents(w io.Writer, c Consent, o Options) error {
	var lines []string
	add := func(key string, texts ...string) {
		for _, text := range texts {
			lines = append(lines, o.entry(key, text)...)
			key = ""
		}
	}
	f, told := c.Fix, consentText{o}
	add("cluster", c.Cluster)
	add("incident", c.Incident+"  "+c.Headline)
	add(fmt.Sprintf("fix %d", f.ID), f.Title)
	add("", told.terms(f), string(f.Proof.Verdict)+": "+f.Proof.Why)
	add("brings", told.brings(f)...)
	add("stops", told.stops(c))
	lines = append(lines, told.stopped(c.Stops)...)
	add("steps", o.numbered(c.Steps)...)
	add("rails", c.Rails)
	add("undo", c.Back...)
	for _, command := range c.Undo { // to be copied: never wrapped
		lines = append(lines, strings.Repeat(" ", entryIndent)+clean(command, false))
	}
	add("plan", f.Plan)
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write what to consent to: %w", err)
	}
	return nil
}

const entryIndent = 10

// entry is a text beside its key, folded and never cut.
func (o style) entry(key, text string) []string {
	var out []string
	for _, line := range o.fold(o.clean(text), o.columns()-entryIndent) {
		out = append(out, o.bold(pad(key, entryIndent))+line)
		key = ""
	}
	return out
}

// terms are the risk, the time and who re-makes GPUs.
func (o consentText) terms(f diagnosis.Fix) string {
	out := fmt.Sprintf("risk %s, takes %s", f.Risk, fixText{o.style}.takes(f))
	if len(f.Cost.Nodes) > 0 {
		out += ", changes " + strings.Join(f.Cost.Nodes, ", ")
	}
	return out
}

// brings says how many pods run afterwards, and who waits.
func (o consentText) brings(f diagnosis.Fix) []string {
	e := f.Effect
	if e == nil {
		return []string{"how many of its pods run afterwards is not worked out"}
	}
	out := []string{fmt.Sprintf("%d of %s; %d wait before, %d afterwards", e.Runs, runsOf(e.Of), e.WaitingBefore, e.WaitingAfter)}
	if len(e.ThenWait) > 0 {
		out = append(out, "then waits: "+names(e.ThenWait))
	}
	return out
}

func runsOf(n int) string {
	if n == 1 {
		return "1 pod runs"
	}
	return fmt.Sprintf("%d pods run", n)
}

func names(pods []diagnosis.PodName) string {
	out := make([]string, len(pods))
	for i, p := range pods {
		out[i] = p.Namespace + "/" + p.Name
	}
	return strings.Join(out, ", ")
}

func (o consentText) stops(c Consent) string {
	known := c.Fix.Cost.RestartsKnown == nil || *c.Fix.Cost.RestartsKnown
	switch n := len(c.Stops); {
	case n == 0 && known:
		return "nobody"
	case n == 0:
		return "nobody that is known; others may stop, and nobody can say who"
	case !known:
		return countedPods(n) + " for certain; others may stop as well, and nobody can say who"
	default:
		return countedPods(n)
	}
}

func (o consentText) stopped(pods []Pod) []string {
	if len(pods) == 0 {
		return nil
	}
	return podText(o).pods(pods, "  ")
}

func (o style) numbered(steps []string) []string {
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = fmt.Sprintf("%d/%d %s", i+1, len(steps), s)
	}
	return out
}
