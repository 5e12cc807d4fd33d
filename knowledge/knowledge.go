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
	ID       string    // unique in an index
	Source   string    // slack, jira, doc or outcome
	Title    string    // one line
	URL      string    // where it can be read; for a file of a folder, its path in the folder
	Text     string    // plain text, paragraphs parted by an empty line
	At       time.Time // when it was written; zero: timeless, as a runbook is
	Resolved bool      // it says how the matter ended
}

// Hit is a document that answers a search, with the passage that does.
type Hit struct {
	Source string    `json:"source"`
	Title  string    `json:"title"`
	URL    string    `json:"url"`
	Quote  string    `json:"quote"` // verbatim, at most 300 characters
	At     time.Time `json:"at"`
	Score  float64   `json:"score"` // compares hits of one search, nothing else
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
