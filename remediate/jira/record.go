package jira

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// record is what is known of an incident's ticket; it is saved before anything is made that
// Jira would make twice, and after.
type record struct {
	incident string
	ID       string    `json:"id,omitempty"` // Jira's; empty until Jira has said it
	Key      string    `json:"key,omitempty"`
	Tried    time.Time `json:"tried,omitzero"` // when it was asked for last, and may be there
	Sum      string    `json:"sum,omitempty"`  // of what it says
	Link     string    `json:"link,omitempty"` // of what its link says
	// Found says that the ticket was not made here, and may have comments of ours; Lines are
	// what has happened, a comment each.
	Found bool   `json:"found,omitempty"`
	Lines []line `json:"lines,omitempty"`
	// Over is since when nobody waits, as people were told; Closed says that we closed it then.
	Over   time.Time `json:"over,omitzero"`
	Closed bool      `json:"closed,omitempty"`
	// Past are its tickets of before, which are left alone.
	Past []string `json:"past,omitempty"`
}

// line is something that has happened. Of one whose comment is there its key alone is kept.
type line struct {
	Key   string    `json:"key"`
	Told  bool      `json:"told,omitempty"`
	Asked bool      `json:"asked,omitempty"` // its comment may be there
	At    time.Time `json:"at,omitzero"`
	Who   string    `json:"who,omitempty"`
	What  string    `json:"what,omitempty"`
	Why   string    `json:"why,omitempty"`
	Next  string    `json:"next,omitempty"` // a command
}

// mostPast are kept; older ones are not found any more, among the newest.
const mostPast = page

// note adds a line to the history, once. Of a ticket that has so many comments nobody reads
// another: what it says itself goes on.
func (r *record) note(l line) {
	if len(r.Lines) < mostLines && !slices.ContainsFunc(r.Lines, func(was line) bool { return was.Key == l.Key }) {
		r.Lines = append(r.Lines, l)
	}
}

// forget leaves a ticket alone from now on.
func (r *record) forget() {
	past := r.Past
	if r.ID != "" {
		past = append(past, r.ID)
	}
	*r = record{incident: r.incident, Past: past[max(0, len(past)-mostPast):]}
}

func (j *Jira) load(ctx context.Context, incident string) (*record, error) {
	r := &record{incident: incident}
	body, err := j.opts.Load(ctx, incident)
	if err != nil {
		return nil, fmt.Errorf("read what Jira was told of %s: %w", incident, err)
	}
	if body != nil && json.Unmarshal(body, r) != nil {
		*r = record{incident: incident} // unreadable is unknown: Jira says what is there
	}
	return r, nil
}

func (j *Jira) save(ctx context.Context, r *record) error {
	body, err := json.Marshal(r)
	if err == nil {
		err = j.opts.Save(ctx, r.incident, body)
	}
	if err != nil {
		return fmt.Errorf("keep what Jira was told of %s: %w", r.incident, err)
	}
	return nil
}

// sum tells one text from another.
func sum(of any) string {
	body, err := json.Marshal(of)
	if err != nil {
		panic(err) // it is ours
	}
	s := sha256.Sum256(body)
	return hex.EncodeToString(s[:8])
}
