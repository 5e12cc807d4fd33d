// Package knowledge holds what the team has said before: runbooks and past
// incidents, indexed in full text and searched with the words of a diagnosis.
//
// The engine does not decide relevance; documents, exact identifiers and
// recency do. So a document is one incident or one runbook (never a whole log),
// resource names, XID numbers and cause ids are matched whole, and an answer
// may be empty: a document that shares only everyday words with a diagnosis is
// no similar incident.
package knowledge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Document is one runbook, thread, ticket or outcome, as plain text.
type Document struct {
	ID       string    `json:"id"`                 // unique in an index
	Source   string    `json:"source"`             // slack, jira, doc or outcome
	Part     string    `json:"part,omitempty"`     // what of the source it is from: a channel's id, a project's key, a folder
	PartName string    `json:"partName,omitempty"` // what people call that
	Title    string    `json:"title"`              // one line
	URL      string    `json:"url"`                // where it can be read; for a file of a folder, its path in the folder
	Text     string    `json:"text"`               // plain text, paragraphs parted by an empty line
	Who      string    `json:"who,omitempty"`      // who began it: an id of the source, never a name
	At       time.Time `json:"at"`                 // when it was written; zero: timeless, as a runbook is
	Resolved bool      `json:"resolved,omitempty"` // it says how the matter ended
	Version  string    `json:"version,omitempty"`  // the source's own sign of whether it has changed since
	Private  bool      `json:"private,omitempty"`  // its part is a private channel
}

// MaxBody bounds a message, a description or a comment, in bytes: what is longer
// is a log that somebody pasted, and drowns what was said.
const MaxBody = 64 << 10

// MaxDocument bounds a document as JSON, in bytes: it travels in one message, and NATS takes
// none of more than 1 MiB.
const MaxDocument = 512 << 10

// Hit is a document that answers a search, with the passage that does.
type Hit struct {
	Source string    `json:"source"`
	Title  string    `json:"title"`
	URL    string    `json:"url"`
	Quote  string    `json:"quote"` // verbatim, at most 300 characters
	At     time.Time `json:"at"`
	Who    string    `json:"who,omitempty"`   // who began it: an id of the source
	Where  string    `json:"where,omitempty"` // what people call the channel or project
	Score  float64   `json:"score"`           // compares hits of one search, nothing else

	Part    string `json:"part,omitempty"`    // the channel's id, the project's key, the folder
	Private bool   `json:"private,omitempty"` // that is a private channel
}

// The sources of documents.
var sources = []string{"slack", "jira", "doc", "outcome"}

// check says why a document cannot be indexed.
func (d Document) check() error {
	switch {
	case d.ID == "":
		return errors.New("it has no id")
	case !slices.Contains(sources, d.Source):
		return fmt.Errorf("source %q is none of %s", d.Source, strings.Join(sources, ", "))
	case !utf8.ValidString(d.Text) || !utf8.ValidString(d.Title):
		return errors.New("it is not valid UTF-8")
	case strings.TrimSpace(d.Text) == "":
		return errors.New("it is empty")
	}
	return nil
}
