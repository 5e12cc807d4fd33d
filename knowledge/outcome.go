package knowledge

import (
	"fmt"
	"time"
)

// Outcome is what became of a fix that was carried out.
type Outcome struct {
	Incident string
	Cause    string // that it was to remove
	Fix      string // its kind
	Title    string
	Plan     string // 64 hex
	Runs     bool   // the pod came to run
	Why      string // it did not
	Took     time.Duration
	Evicted  int
	At       time.Time // of its end
	// Layouts are the MIG configs that it gave to nodes.
	Layouts []Layout
}

// Layout is the MIG config of a node before and after a fix.
type Layout struct{ Node, Was, Became string }

// Hit is the outcome as a diagnosis quotes it.
func (o Outcome) Hit() Hit {
	quote := fmt.Sprintf("%s: the pod ran after %s, %d evicted", o.Title, o.Took.Round(time.Second), o.Evicted)
	if !o.Runs {
		quote = fmt.Sprintf("%s: did not help: %s", o.Title, o.Why)
	}
	if r := []rune(quote); len(r) > 300 {
		quote = string(r[:300])
	}
	return Hit{Source: "outcome", Title: o.Fix + " for " + o.Cause, Quote: quote, At: o.At}
}
