package knowledge

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Outcome is what became of a fix that was carried out.
type Outcome struct {
	Incident string
	Workload string // that waited: Job ml/training
	Headline string // of its diagnosis
	Cause    string // that it was to remove
	Fix      string // its kind
	Title    string
	Plan     string   // 64 hex
	By       []string // who approved it
	Runs     bool     // the pod came to run
	Why      string   // it did not
	Took     time.Duration
	Evicted  int
	At       time.Time // of its end
	// Layouts are the MIG configs that it gave to nodes.
	Layouts []Layout
}

// Layout is the MIG config of a node before and after a fix.
type Layout struct{ Node, Was, Became string }

// outcomes is their source.
const outcomes = "outcome"

// Hit is the outcome as a diagnosis quotes it.
func (o Outcome) Hit() Hit {
	quote := o.says()
	if r := []rune(quote); len(r) > quoteRunes {
		quote = string(r[:quoteRunes])
	}
	return Hit{Source: outcomes, Title: o.named(), Quote: quote, At: o.At}
}

func (o Outcome) named() string { return o.Fix + " for " + o.Cause }

// says is what was approved, and what it did.
func (o Outcome) says() string {
	if !o.Runs {
		return fmt.Sprintf("%s: did not help: %s", o.Title, o.Why)
	}
	return fmt.Sprintf("%s: the pod ran after %s, %d evicted", o.Title, o.Took.Round(time.Second), o.Evicted)
}

// Document is the outcome as a library keeps it, also when the cluster has forgotten the plan.
// A plan that was carried out twice has two.
func (o Outcome) Document() Document {
	about := []string{fmt.Sprintf("%s, against %s", o.Fix, o.Cause)}
	if o.Workload != "" {
		about = append(about, "for "+o.Workload)
	}
	if !o.Runs {
		about = append(about, fmt.Sprintf("given up after %s", o.Took.Round(time.Second)))
	}
	text := []string{o.says(), strings.Join(about, ", ") + ". Incident " + o.Incident + ", plan " + o.Plan + "."}
	if o.Headline != "" {
		text = append(text, o.Headline)
	}
	for _, l := range o.Layouts {
		text = append(text, fmt.Sprintf("%s was laid out %s, and then %s.", l.Node, l.Was, l.Became))
	}
	return Document{ID: fmt.Sprintf("%s/%s-%d", outcomes, o.Plan, o.At.Unix()), Source: outcomes, Title: o.named(), Text: strings.ToValidUTF8(strings.Join(text, "\n\n"), "�"),
		Who: strings.Join(o.By, ", "), At: o.At.UTC().Truncate(time.Second), Resolved: o.Runs}
}

// Is says whether a hit tells of this outcome.
func (o Outcome) Is(h Hit) bool {
	return h.Source == outcomes && h.Title == o.named() && h.At.Equal(o.At.Truncate(time.Second))
}

// Outcomes are what became of fixes, as a Source: what is not among them any more stays.
type Outcomes func(context.Context) ([]Outcome, error)

// Read implements Source.
func (o Outcomes) Read(ctx context.Context, to *Intake) ([]Whole, error) {
	all, err := o(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what became of plans: %w", err)
	}
	for _, one := range all {
		if err := to.Add(ctx, one.Document()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
