package jira

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// ticket has one be there: it is looked for, and made where it is not. Jira has no key
// against making it twice, and its search runs behind: that it is asked for is kept before,
// and what may have been made is looked for until it would have been found.
func (j *Jira) ticket(ctx context.Context, r *record, p notice.Proposal) error {
	if r.ID != "" {
		return nil
	}
	return notice.Retry(ctx, j.clock, func(ctx context.Context) error {
		all, err := j.labelled(ctx, j.opts.label(r.incident))
		if err != nil {
			return err
		}
		if j.adopt(r, all, p); r.ID != "" {
			return j.save(ctx, r)
		}
		now := j.clock.Now()
		switch {
		case !r.Tried.IsZero() && now.Before(r.Tried.Add(settles)):
			return &notice.Passing{Err: errors.New("make a ticket: nobody knows yet whether the last try has made one")}
		case idle(p):
			return nil
		}
		return j.create(ctx, r, p)
	})
}

// adopt takes a ticket that is there for the incident's: the newest that is open, or else the
// newest if it would be opened again.
func (j *Jira) adopt(r *record, all []found, p notice.Proposal) {
	all = slices.DeleteFunc(all, func(f found) bool { return slices.Contains(r.Past, f.ID) })
	if len(all) == 0 {
		return
	}
	is := all[0]
	if i := slices.IndexFunc(all, func(f found) bool { return !f.Fields.Status.done() }); i >= 0 {
		is = all[i]
	}
	if is.Fields.Status.done() && p.Finding != nil {
		over, since := is.over(), p.Finding.Pods.Since
		if since.Sub(over) > j.opts.Reopen {
			return
		}
		r.Closed = since.After(over) // else a person has closed it while it waits
	}
	r.ID, r.Key, r.Found = is.ID, is.Key, true
}

// create asks for a ticket, once.
func (j *Jira) create(ctx context.Context, r *record, p notice.Proposal) error {
	r.Tried = j.clock.Now().UTC()
	if err := j.save(ctx, r); err != nil {
		return err
	}
	says := j.says(p)
	fields := maps.Clone(j.meta.fields)
	maps.Copy(fields, says)
	fields["labels"] = append([]string{"unpend", j.opts.label(r.incident)}, j.opts.Labels...)
	var made found
	err := j.call(ctx, "make a ticket", http.MethodPost, "issue", map[string]any{"fields": fields}, &made)
	if err == nil && made.ID == "" {
		err = &notice.Passing{Err: errors.New("make a ticket: Jira does not say which it has made")}
	}
	if err != nil && !mayBeDone(err) {
		r.Tried = time.Time{} // it was not made
		if e, ok := errors.AsType[*answer](err); ok && e.code == http.StatusBadRequest {
			j.meta = nil // perhaps the project has changed: it is looked at again
		}
		return content(errors.Join(err, j.save(ctx, r)))
	}
	if err != nil {
		return err
	}
	j.opts.Logger.InfoContext(ctx, "a ticket was made", "incident", r.incident, "ticket", made.Key)
	r.ID, r.Key, r.Sum = made.ID, made.Key, sum(says)
	return j.save(ctx, r)
}

// says are the fields of a ticket that are told.
func (j *Jira) says(p notice.Proposal) map[string]any {
	return map[string]any{"summary": title(p), "description": j.speak.write(j.describe(p))}
}

// edit has a ticket say what is found now.
func (j *Jira) edit(ctx context.Context, r *record, p notice.Proposal) error {
	if p.Finding == nil {
		return nil // what it says is more
	}
	says := j.says(p)
	if r.Sum == sum(says) {
		return nil
	}
	if err := content(j.steadily(ctx, ofTicket+r.Key+": edit it", http.MethodPut, "issue/"+r.ID, map[string]any{"fields": says}, nil)); err != nil {
		return err
	}
	r.Sum = sum(says)
	return j.save(ctx, r)
}

// link has a ticket lead to where people see the incident. Its globalId makes that one link:
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-remote-links/
func (j *Jira) link(ctx context.Context, r *record, p notice.Proposal) error {
	if j.opts.Link == "" {
		return nil
	}
	global := j.opts.label(r.incident)
	body := map[string]any{"globalId": wording.Fit(global, maxGlobalID), "application": map[string]any{"type": "dev.unpend", "name": "unpend"}, "relationship": "found by",
		"object": map[string]any{"url": j.at(r.incident), "title": "incident " + r.incident + " in " + j.opts.Cluster, "status": map[string]any{"resolved": over(p)}}}
	if r.Link == sum(body) {
		return nil
	}
	if err := j.steadily(ctx, ofTicket+r.Key+": link it", http.MethodPost, fmt.Sprintf("issue/%s/remotelink", r.ID), body, nil); err != nil {
		return err
	}
	r.Link = sum(body)
	return j.save(ctx, r)
}

// over says whether there is nothing left to do about an incident.
func over(p notice.Proposal) bool { return !p.Resolved.IsZero() && !parked(p) }
