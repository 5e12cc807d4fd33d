package diagnosis

import "time"

// Wording is what a language model made of a diagnosis, for people to read beside it. It is
// text and nothing else: no cause, fix, argument or order comes from it.
type Wording struct {
	Model string `json:"model"`
	// Of tells which diagnosis it words: one that says something else has another.
	Of string `json:"of"`
	// Sentences are those that passed every check; none where the model gave none of use.
	Sentences []Sentence `json:"sentences,omitempty"`
}

// Sentence is one that a model wrote, and what it was held against.
type Sentence struct {
	Says string   `json:"says"`
	From []string `json:"from"` // the evidence: "NodeGeometry/gpu-1", "fix 1"
}

// Clock is a moment, for people.
func Clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
