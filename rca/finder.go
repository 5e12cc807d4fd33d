package rca

import (
	"log/slog"

	"github.com/unpend/unpend/knowledge"
)

// finder finds, proves and orders what can be done about one case.
type finder struct {
	*Bench
	// first are, by kinds, the cheapest candidates so far: as many as will be tried.
	first   map[string][]*candidate
	weighed []change // room for weighing the next
	// free counts, by kinds, the candidates so far that cost nobody anything.
	free map[string]int
	// logger is told of each fix that was tried; nil: nobody is.
	logger *slog.Logger
}

// failures is in how many percent of its past uses a kind of fix did not help against
// a cause; 0 when it was never used.
func (c *finder) failures(cause CauseID, kind FixKind) int {
	failed, of := 0, 0
	for _, o := range c.past {
		if o.Cause == string(cause) && o.Fix == string(kind) {
			of++
			if !o.Runs {
				failed++
			}
		}
	}
	return failed * 100 / max(1, of)
}

func newFinder(c *Case, past []knowledge.Outcome, logger *slog.Logger) *finder {
	return &finder{Bench: NewBench(c, past), logger: logger}
}
