package diagnosis

import (
	_ "embed"
	"fmt"
	"sync"

	"sigs.k8s.io/yaml"
)

// Explanation is what a cause of the catalogue means, wherever it is met.
type Explanation struct {
	ID    CauseID `json:"id"`
	Words string  `json:"words"` // in a headline
	Says  string  `json:"says"`
	Told  string  `json:"told"` // how it is told from others: from which live state
	Not   string  `json:"not"`  // what it must not be confused with
	// Fixes are those that may help, in no order: which does is proved for each incident.
	Fixes []FixExplanation `json:"fixes"`
}

// FixExplanation is what a kind of fix does.
type FixExplanation struct {
	Kind FixKind `json:"kind"`
	// Automatic: carried out once a person has approved it; else commands are shown.
	Automatic bool   `json:"automatic"`
	Does      string `json:"does"`
}

//go:embed causes.yaml
var causesYAML []byte

var explanations = sync.OnceValue(func() map[CauseID]Explanation {
	var groups map[string]map[string]struct {
		Says, Told, Not string
		Fixes           []FixKind
		Automatic       bool
		Does            string
	}
	if err := yaml.UnmarshalStrict(causesYAML, &groups); err != nil {
		panic(fmt.Sprintf("causes.yaml: %v", err)) // it is built in
	}
	out := map[CauseID]Explanation{}
	for group, rows := range groups {
		if group == "fixes" {
			continue
		}
		for id, row := range rows {
			e := Explanation{ID: CauseID(id), Words: CauseID(id).Words(), Says: row.Says, Told: row.Told, Not: row.Not, Fixes: []FixExplanation{}}
			for _, kind := range row.Fixes {
				does := groups["fixes"][string(kind)]
				e.Fixes = append(e.Fixes, FixExplanation{kind, does.Automatic, does.Does})
			}
			out[e.ID] = e
		}
	}
	return out
})

// Explain is what a cause means; false for one that is not of the catalogue.
func Explain(id CauseID) (Explanation, bool) {
	e, ok := explanations()[id]
	return e, ok
}
