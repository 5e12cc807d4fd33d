package jira

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// history has a comment for each thing that has happened, in order. Steps are none: the ticket
// says where its plan stands, and each would be a mail to everybody.
func (j *Jira) history(ctx context.Context, r *record, p notice.Proposal) error {
	r.tell(p)
	for i := range r.Lines {
		if r.Lines[i].Told {
			continue
		}
		if err := j.remark(ctx, r, &r.Lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// tell notes what is new in a proposal.
func (r *record) tell(p notice.Proposal) {
	for _, n := range p.Plans {
		r.note(happened(n))
	}
	if says := wording.Snoozed(p); says != "" {
		r.note(line{Key: fmt.Sprint("snoozed-", p.Snoozed.Until.Unix()), At: cmp.Or(p.Snoozed.At, p.Snoozed.Until), What: says})
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

// mark is what tells our comment on a line from all others, and stands at its end. It has
// letters, digits and spaces alone, which every notation leaves as they are.
func (l line) mark() string { return "unpend " + strings.ReplaceAll(l.Key, "-", " ") }

func (l line) comment() document {
	const most = 500
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
	return document{{text: w.runs}, {text: []run{{text: l.mark()}}}}
}

// remark makes a line's comment, unless it is there: Jira has no key against making it twice,
// so what may have been made is looked for among ours. Unlike a search, this list is never
// behind. A comment that somebody deletes afterwards stays deleted.
func (j *Jira) remark(ctx context.Context, r *record, l *line) error {
	told := func() error {
		*l = line{Key: l.Key, Told: true}
		return j.save(ctx, r)
	}
	return notice.Retry(ctx, j.clock, func(ctx context.Context) error {
		if l.Asked || r.Found {
			there, err := j.ours(ctx, r, l.mark())
			if err != nil {
				return err
			}
			if there {
				return told()
			}
		}
		l.Asked = true
		if err := j.save(ctx, r); err != nil {
			return err
		}
		body := map[string]any{"body": j.speak.write(l.comment())}
		if err := j.call(ctx, ofTicket+r.Key+": comment on it", http.MethodPost, fmt.Sprintf("issue/%s/comment", r.ID), body, nil); err != nil {
			return content(err)
		}
		return told()
	})
}

// ours says whether a comment of ours with a mark is there.
func (j *Jira) ours(ctx context.Context, r *record, mark string) (bool, error) {
	for start, n := 0, 0; n < pages; n++ {
		var got struct {
			Comments []struct {
				Author account         `json:"author"`
				Body   json.RawMessage `json:"body"`
			} `json:"comments"`
			Total int `json:"total"`
		}
		path := fmt.Sprintf("issue/%s/comment?startAt=%d&maxResults=%d", r.ID, start, page)
		if err := j.call(ctx, ofTicket+r.Key+": look for the comment", http.MethodGet, path, nil, &got); err != nil {
			return false, err
		}
		for _, c := range got.Comments {
			if c.Author.same(j.meta.me) && strings.Contains(string(c.Body), mark) {
				return true, nil
			}
		}
		if start += len(got.Comments); len(got.Comments) == 0 || start >= got.Total {
			break
		}
	}
	return false, nil
}

// account is who has written something: Cloud names it by accountId, Data Center by key.
type account struct {
	ID  string `json:"accountId"`
	Key string `json:"key"`
}

func (a account) same(as account) bool { return a == as && a != account{} }
