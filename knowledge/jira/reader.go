package jira

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unpend/unpend/knowledge"
)

const (
	// few and many are how many tickets are asked for at once: with their texts, and with their
	// time alone. Jira may give fewer.
	few, many = 100, 1000
	// skew is how far its clock may be behind ours.
	skew = 5 * time.Minute
)

// texts are the fields that a document is made of. They are named, for Cloud gives ids alone
// otherwise.
var texts = []string{"summary", "description", "comment", "status", "resolution", "created", "updated", "reporter", "project", "security"}

// progress is how far a project has been read; it is kept with what was read.
type progress struct {
	Until time.Time `json:"until,omitzero"` // all that was updated before was read, once
	Swept time.Time `json:"swept,omitzero"` // all was compared
	Pass  *pass     `json:"pass,omitempty"` // one that has not ended
}

// pass goes through all tickets that were updated since a time.
type pass struct {
	Since time.Time `json:"since,omitzero"` // zero: all
	Began time.Time `json:"began"`
	At    string    `json:"at,omitempty"` // the page that is next: what Jira named it, or a number of tickets
}

// reader reads one project after the other.
type reader struct {
	*API
	to    *knowledge.Intake
	read  int
	watch func(share float64)
}

func (r *reader) project(ctx context.Context, key string) error {
	name := "jira/" + key
	var p progress
	if _, err := r.to.Marked(name, &p); err != nil {
		return err
	}
	if p.Pass != nil && !p.Pass.Since.IsZero() && r.speak.tokens {
		p.Pass = nil // its query says "before so many minutes", which now means another time
	}
	for again := true; again; {
		again = p.Pass != nil
		if !again {
			p.Pass = &pass{Since: p.Until, Began: r.opts.Clock.Now()}
		}
		if err := r.pass(ctx, key, name, &p); err != nil {
			return err
		}
		p.Until, p.Pass = p.Pass.Began, nil
		if err := r.to.Mark(ctx, name, p); err != nil {
			return err
		}
	}
	if r.opts.Clock.Now().Sub(p.Swept) < r.opts.Sweep {
		return nil
	}
	began := r.opts.Clock.Now()
	if err := r.sweep(ctx, key); err != nil {
		return err
	}
	p.Swept = began
	return r.to.Mark(ctx, name, p)
}

// jql asks for what was updated since a time, in the order of its keys, which does not change
// while it is read. Jira reads a time in the zone of the account, which nobody here knows;
// what it is told is how many minutes ago it was:
// https://support.atlassian.com/jira-software-cloud/docs/advanced-search-reference-jql-fields/
func jql(project string, since, now time.Time) string {
	if since.IsZero() {
		return fmt.Sprintf("project = %s ORDER BY key ASC", quoted(project))
	}
	ago := (now.Sub(since) + skew + time.Minute - 1) / time.Minute
	return fmt.Sprintf("project = %s AND updated >= -%dm ORDER BY key ASC", quoted(project), ago)
}

// quoted is a text in JQL: https://support.atlassian.com/jira-software-cloud/docs/search-syntax-for-text-fields/
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// pass reads page after page; each is kept with a mark of how far it goes.
func (r *reader) pass(ctx context.Context, key, name string, p *progress) error {
	at, total, done := p.Pass, 0, 0
	if at.At == "" {
		total = r.count(ctx, jql(key, at.Since, at.Began))
	}
	for first := true; first || at.At != ""; first = false {
		// A query that goes on where a page ended has to be the same; one that counts has to
		// begin at the same time, and a ticket more than that is only read twice.
		now := at.Began
		if !r.speak.tokens {
			now = r.opts.Clock.Now()
		}
		got, next, err := r.page(ctx, "search tickets", jql(key, at.Since, now), at.At, few, texts...)
		if is(err, http.StatusBadRequest) && at.At != "" && first && r.speak.tokens {
			at.At = "" // it was named too long ago
			got, next, err = r.page(ctx, "search tickets", jql(key, at.Since, now), "", few, texts...)
		}
		if err != nil {
			return err
		}
		for _, raw := range got.Issues {
			if err := r.take(ctx, "", raw); err != nil {
				return err
			}
		}
		at.At, done = next, done+len(got.Issues)
		if err := r.to.Mark(ctx, name, p); err != nil {
			return err
		}
		r.watch(share(max(done, got.Start+len(got.Issues)), max(total, got.Total), next == ""))
	}
	return nil
}

func share(done, of int, all bool) float64 {
	if all {
		return 1
	}
	return min(1, float64(done)/float64(max(of, done, 1)))
}

// take makes a document of a ticket. known is the key that it was asked for by; empty: it was
// found.
func (r *reader) take(ctx context.Context, known string, raw json.RawMessage) error {
	var t ticket
	if err := json.Unmarshal(raw, &t); err != nil {
		if _, shape := errors.AsType[*json.UnmarshalTypeError](err); !shape {
			return fmt.Errorf("read a ticket: %w", err)
		}
		r.to.Skip(t.Key, odd)
		return nil
	}
	if known != "" && t.Key != known { // it was moved to where it has another key
		if err := r.to.Remove(ctx, idOf(known)); err != nil || !r.asked(t.Key) {
			return err
		}
	}
	r.read++
	if r.to.Taken(idOf(t.Key)) {
		return nil // a page that begins before the last one ended
	}
	if t.Fields != nil && !restricted(t.Fields.Security) {
		if has, err := r.to.Has(idOf(t.Key), t.Fields.Updated); has || err != nil {
			return err
		}
	}
	if err := r.comments(ctx, &t); err != nil {
		return err
	}
	d, why := document(r.opts.Site, t, r.to)
	if why != "" {
		r.to.Skip(t.Key, why)
		return r.to.Remove(ctx, idOf(t.Key)) // everybody could read it, once
	}
	d.Version = t.Fields.Updated
	return r.to.Add(ctx, d)
}

func idOf(key string) string { return "jira/" + key }

// asked is whether a ticket is of a project that is read.
func (r *reader) asked(key string) bool {
	project, _, _ := strings.Cut(key, "-")
	return slices.Contains(r.opts.Projects, project)
}

// comments reads those that a search leaves out: it gives 20 of a ticket at most, on Cloud.
func (r *reader) comments(ctx context.Context, t *ticket) error {
	if t.Fields == nil || len(t.Fields.Comment.Comments) >= t.Fields.Comment.Total {
		return nil
	}
	var all []comment
	for {
		var got struct {
			Comments []comment `json:"comments"`
			Total    int       `json:"total"`
		}
		path := "issue/" + url.PathEscape(t.Key) + "/comment?orderBy=created&maxResults=" + strconv.Itoa(few) + "&startAt=" + strconv.Itoa(len(all))
		err := r.call(ctx, "read comments of "+t.Key, http.MethodGet, path, nil, &got)
		if is(err, http.StatusNotFound) {
			return nil // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		all = append(all, got.Comments...)
		if len(got.Comments) == 0 || len(all) >= got.Total {
			t.Fields.Comment.Comments = all
			return nil
		}
	}
}

// sweep compares what is there with all tickets of a project, and asks for each that is only
// here, or is another one there. What was deleted is taken out; what a search has missed, since
// it runs behind, comes in.
func (r *reader) sweep(ctx context.Context, project string) error {
	there := map[string]bool{}
	var other []string
	for at, first := "", true; first || at != ""; first = false {
		got, next, err := r.page(ctx, "list tickets", jql(project, time.Time{}, time.Time{}), at, many, "updated")
		if err != nil {
			return err
		}
		for _, raw := range got.Issues {
			var t ticket
			if err := json.Unmarshal(raw, &t); err != nil || t.Key == "" {
				continue // it was told when it was read
			}
			there[idOf(t.Key)] = true
			has, err := r.has(t)
			if err != nil {
				return err
			}
			if !has {
				other = append(other, t.Key)
			}
		}
		at = next
	}
	known, err := r.to.Known(ctx, "jira", project)
	if err != nil {
		return err
	}
	for _, id := range known {
		if !there[id] {
			other = append(other, strings.TrimPrefix(id, "jira/"))
		}
	}
	for _, key := range other {
		if err := r.again(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) has(t ticket) (bool, error) {
	if r.to.Taken(idOf(t.Key)) {
		return true, nil
	}
	version := ""
	if t.Fields != nil {
		version = t.Fields.Updated
	}
	return r.to.Has(idOf(t.Key), version)
}

// again asks for one ticket.
func (r *reader) again(ctx context.Context, key string) error {
	var raw json.RawMessage
	err := r.call(ctx, "read "+key, http.MethodGet, "issue/"+url.PathEscape(key)+"?fields="+strings.Join(texts, ","), nil, &raw)
	if is(err, http.StatusNotFound, http.StatusForbidden) {
		return r.to.Remove(ctx, idOf(key))
	}
	if err != nil {
		return err
	}
	return r.take(ctx, key, raw)
}
