package jira

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// history keeps one comment that says what has happened: Jira takes about 5,000 comments a
// ticket, and people read none of a hundred.
func (j *Jira) history(ctx context.Context, r *record, p notice.Proposal) error {
	if r.tell(p); len(r.Lines) == 0 {
		return nil
	}
	body := j.speak.write(j.within(r.comment()))
	if r.Comment.Sum == sum(body) {
		return nil
	}
	if r.Comment.ID == "" {
		if err := j.remark(ctx, r, body); err != nil {
			return err
		}
	}
	if r.Comment.Sum != sum(body) {
		err := j.steadily(ctx, ofTicket+r.Key+": edit the comment", http.MethodPut, fmt.Sprintf("issue/%s/comment/%s", r.ID, r.Comment.ID), map[string]any{"body": body}, nil)
		if isGone(err) { // somebody has deleted it: it is made again
			r.Comment = comment{}
			return j.history(ctx, r, p)
		}
		if err := content(err); err != nil {
			return err
		}
	}
	r.Comment.Sum = sum(body)
	return j.save(ctx, r)
}

// tell notes what is new in a proposal.
func (r *record) tell(p notice.Proposal) {
	for _, n := range p.Plans {
		r.note(happened(n))
	}
	if !p.Resolved.IsZero() {
		r.note(line{Key: fmt.Sprint("over-", p.Resolved.Unix()), At: p.Resolved, What: "nobody of it waits any more"})
	}
}

// happened is the line that says what became of a plan.
func happened(n notice.Notice) line {
	l := line{Key: fmt.Sprintf("%.12s-%s", n.Plan, n.What), At: n.Since, Who: strings.Join(n.Approvers, ", "), Why: n.Reason}
	if n.What == notice.Running && !n.Began.IsZero() {
		l.At, l.Why = n.Began, ""
	}
	n.Progress, n.Step = "", ""
	where, what := wording.Standing(n)
	l.What = where + ": " + what
	if n.What == notice.Parked {
		l.Next = "kubectl unpend release " + n.Node
	}
	if n.AuditHead != "" {
		l.Why = strings.TrimPrefix(l.Why+" (audit trail "+n.AuditHead+")", " ")
	}
	return l
}

// heading begins our comment, by which it is found.
const heading = "What has happened, as unpend tells it"

func (r *record) comment() document {
	const most = 500
	var list [][]run
	for _, l := range r.Lines {
		w := words{most: most}
		w.plain(utc(l.At) + "  ")
		if l.Who != "" {
			w.plain("approved by ").bold(l.Who).plain(" → ")
		}
		if w.plain(l.What); l.Why != "" {
			w.plain(". " + l.Why)
		}
		if l.Next != "" {
			w.plain(": ").name(l.Next)
		}
		list = append(list, w.runs)
	}
	return document{{heading: heading}, {items: list}}
}

// remark makes the comment, unless it is there: Jira has no key against making it twice, so
// what may have been made is looked for among ours. Unlike a search, this list is never behind.
func (j *Jira) remark(ctx context.Context, r *record, body any) error {
	return notice.Retry(ctx, j.clock, func(ctx context.Context) error {
		if r.Comment.Asked {
			id, err := j.ours(ctx, r)
			if err != nil {
				return err
			}
			if id != "" {
				r.Comment.ID, r.Comment.Sum = id, ""
				return j.save(ctx, r)
			}
		}
		r.Comment.Asked = true
		if err := j.save(ctx, r); err != nil {
			return err
		}
		var made struct {
			ID string `json:"id"`
		}
		if err := j.call(ctx, ofTicket+r.Key+": comment on it", http.MethodPost, fmt.Sprintf("issue/%s/comment", r.ID), map[string]any{"body": body}, &made); err != nil {
			return content(err)
		}
		if made.ID == "" {
			return &notice.Passing{Err: errors.New("comment on a ticket: Jira does not say which comment it has made")}
		}
		r.Comment.ID, r.Comment.Sum = made.ID, sum(body)
		return j.save(ctx, r)
	})
}

// ours finds our comment on a ticket.
func (j *Jira) ours(ctx context.Context, r *record) (string, error) {
	for start, n := 0, 0; n < pages; n++ {
		var got struct {
			Comments []struct {
				ID     string          `json:"id"`
				Author account         `json:"author"`
				Body   json.RawMessage `json:"body"`
			} `json:"comments"`
			Total int `json:"total"`
		}
		path := fmt.Sprintf("issue/%s/comment?startAt=%d&maxResults=%d", r.ID, start, page)
		if err := j.call(ctx, ofTicket+r.Key+": look for the comment", http.MethodGet, path, nil, &got); err != nil {
			return "", err
		}
		for _, c := range got.Comments {
			if c.Author.same(j.meta.me) && strings.Contains(string(c.Body), heading) {
				return c.ID, nil
			}
		}
		if start += len(got.Comments); len(got.Comments) == 0 || start >= got.Total {
			break
		}
	}
	return "", nil
}

// account is who has written something: Cloud names it by accountId, Data Center by key.
type account struct {
	ID  string `json:"accountId"`
	Key string `json:"key"`
}

func (a account) same(as account) bool { return a == as && a != account{} }
