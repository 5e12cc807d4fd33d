// Package jira reads tickets: from what Jira's search answers over REST, saved to a file
// (Export), or by asking it (NewAPI). Each is a document, with its resolution. Cloud (version
// 3, bodies as ADF) and Data Center (version 2, bodies as wiki markup) are read alike.
package jira

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/unpend/unpend/knowledge"
)

// Export is a file of search results: pages ({"issues":[…]}), or lists of
// tickets, one after the other.
type Export struct {
	// File is its path.
	File string
	// Site is the address that people browse, such as https://acme.atlassian.net; empty:
	// that of each ticket's own address, unless it is the API gateway's.
	Site string
	// Complete says that the file has every ticket of its projects: one that it lacks
	// was deleted.
	Complete bool
	// Watch sees what is read, as it is read; nil: nobody does.
	Watch func(io.Reader) io.Reader
}

const (
	// gateway is where tokens with scopes are taken.
	gateway = "https://api.atlassian.com/"
	odd     = "a ticket of another shape than Jira's"
)

// Read implements knowledge.Source. The file is read twice: one that was cut off gives
// an error before anything of it is taken.
func (e *Export) Read(ctx context.Context, to *knowledge.Intake) ([]knowledge.Whole, error) {
	tickets := 0
	if err := e.each(func(*json.Decoder) error { tickets++; return nil }, true); err != nil {
		return nil, fmt.Errorf("read Jira export %s: %w; nothing of it was taken", e.File, err)
	}
	if tickets == 0 {
		return nil, fmt.Errorf("read Jira export %s: it has no ticket: save what /rest/api/2/search (Data Center) or /rest/api/3/search/jql (Cloud) answers", e.File)
	}
	projects := map[string]bool{}
	err := e.each(func(d *json.Decoder) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var t ticket
		var wrong *json.UnmarshalTypeError
		if err := d.Decode(&t); errors.As(err, &wrong) {
			to.Skip(t.Key, odd)
			return nil
		} else if err != nil {
			return err
		}
		doc, why := document(e.Site, t, to)
		if why != "" {
			to.Skip(t.Key, why)
			return nil
		}
		projects[doc.Part] = true
		return to.Add(ctx, doc)
	}, false)
	if err != nil || !e.Complete {
		return nil, err
	}
	var whole []knowledge.Whole
	for p := range projects {
		whole = append(whole, knowledge.Whole{Source: "jira", Part: p})
	}
	return whole, nil
}

// each calls take where a ticket begins; it reads the ticket, or, to count, nothing.
func (e *Export) each(take func(*json.Decoder) error, count bool) (err error) {
	f, err := os.Open(e.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := io.Reader(f)
	if e.Watch != nil {
		in = e.Watch(in)
	}
	w := walker{d: json.NewDecoder(in), take: take}
	if count {
		w.take = func(d *json.Decoder) error {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return err
			}
			return take(d)
		}
	}
	for {
		if err := w.value(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// walker finds the tickets in a stream of JSON.
type walker struct {
	d    *json.Decoder
	take func(*json.Decoder) error
}

// value reads a page or a list; io.EOF says that the stream has ended.
func (w walker) value() error {
	open, err := w.d.Token()
	if err != nil {
		return err
	}
	switch open {
	case json.Delim('['):
		err = w.list()
	case json.Delim('{'):
		err = w.page()
	default:
		return errors.New("it is no answer of Jira's search: an object or a list was expected")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("its end is missing: save it again")
	}
	return err
}

// list reads the tickets of a list that has been opened.
func (w walker) list() error {
	for w.d.More() {
		if err := w.take(w.d); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}

// page reads an object that has been opened: of its keys, the one with the tickets.
func (w walker) page() error {
	for w.d.More() {
		key, err := w.d.Token()
		if err != nil {
			return err
		}
		if key == "issues" {
			open, err := w.d.Token()
			if err != nil {
				return err
			}
			if open != json.Delim('[') {
				return errors.New("its issues are no list")
			}
			if err := w.list(); err != nil {
				return err
			}
			continue
		}
		var other json.RawMessage
		if err := w.d.Decode(&other); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}

// browse is the address at which people read a ticket; empty where nobody knows it.
func browse(site string, t ticket) string {
	site = strings.TrimSuffix(site, "/")
	if site == "" {
		before, _, ok := strings.Cut(t.Self, "/rest/api/")
		// Tokens with scopes work at the gateway alone, which nobody can browse.
		if !ok || strings.HasPrefix(before, gateway) {
			return ""
		}
		site = before
	}
	return site + "/browse/" + t.Key
}
