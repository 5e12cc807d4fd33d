package fixes

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/changes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// Finder finds, proves and orders what can be done about one case.
type Finder struct {
	*changes.Bench
	// first are, by kinds, the cheapest candidates so far: as many as will be tried.
	first map[string][]*candidate
	// waiting are the incident's pods that wait, once asked for.
	waiting []*corev1.Pod
	weighed []edit.Change // a buffer for weighing the next
	// victimless counts, by kinds, the candidates so far that cost nobody anything.
	victimless map[string]int
	// guard says what would hold a fix back; nil: nobody can be asked. halted: it holds all
	// of them. heldNodes is what it said of fixes for the same nodes.
	guard     diagnosis.Guard
	halted    bool
	heldNodes map[string]bool
	// logger gets a line for each fix that was tried; nil: nobody does.
	logger *slog.Logger
}

// failures is in how many percent of its past uses a kind of fix did not help against
// a cause; 0 when it was never used.
func (c *Finder) failures(cause diagnosis.CauseID, kind diagnosis.FixKind) int {
	failed, of := 0, 0
	for _, o := range c.Past {
		if o.Cause == string(cause) && o.Fix == string(kind) {
			of++
			if !o.Runs {
				failed++
			}
		}
	}
	return failed * 100 / max(1, of)
}

// New makes a finder for one case. past are the outcomes of past fixes, newest first; a nil
// guard holds nothing back, a nil logger is told nothing.
func New(c *causes.Case, past []knowledge.Outcome, guard diagnosis.Guard, logger *slog.Logger) *Finder {
	f := &Finder{Bench: changes.New(c, past), guard: guard, heldNodes: map[string]bool{}, logger: logger}
	f.halted = guard != nil && guard(c.Incident, diagnosis.Fix{Cost: diagnosis.Cost{Nodes: []string{}}}).Why != ""
	return f
}
