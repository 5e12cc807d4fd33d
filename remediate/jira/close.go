package jira

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/unpend/unpend/remediate/notice"
)

// close has a ticket closed once nobody waits and nobody has to come, and opened again once
// somebody does. A ticket that a person has closed is left as it is.
func (j *Jira) close(ctx context.Context, r *record, p notice.Proposal) error {
	done := over(p)
	if done == r.Closed && p.Resolved.Equal(r.Over) {
		return nil
	}
	if done != r.Closed {
		if err := j.move(ctx, r, done); err != nil {
			return err
		}
		r.Closed = done
	}
	r.Over = p.Resolved
	return j.save(ctx, r)
}

// transition is a way out of a ticket's status.
type transition struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	To     status `json:"to"`
	Fields map[string]struct {
		Required bool   `json:"required"`
		Default  bool   `json:"hasDefaultValue"`
		Name     string `json:"name"`
	} `json:"fields"`
}

// move takes a ticket to the status that it is to have. Once it is there nothing is done:
// asked again after an answer that was lost, too.
func (j *Jira) move(ctx context.Context, r *record, done bool) error {
	doing, want := ofTicket+r.Key+": open it again", j.opts.OpenStatus
	if done {
		doing, want = ofTicket+r.Key+": close it", j.opts.DoneStatus
	}
	return notice.Retry(ctx, j.clock, func(ctx context.Context) error {
		var is found
		if err := j.call(ctx, doing, http.MethodGet, "issue/"+r.ID+"?fields=status", nil, &is); err != nil {
			return err
		}
		if is.Fields.Status.done() == done {
			return nil
		}
		var got struct {
			Transitions []transition `json:"transitions"`
		}
		if err := j.call(ctx, doing, http.MethodGet, "issue/"+r.ID+"/transitions?expand=transitions.fields", nil, &got); err != nil {
			return err
		}
		i := slices.IndexFunc(got.Transitions, func(t transition) bool {
			return t.To.done() == done && (want == "" || strings.EqualFold(t.To.Name, want))
		})
		if i < 0 {
			return noWay(doing, is.Fields.Status.Name, want, done, got.Transitions)
		}
		body, err := j.with(doing, got.Transitions[i])
		if err != nil {
			return err
		}
		return j.call(ctx, doing, http.MethodPost, "issue/"+r.ID+"/transitions", body, nil)
	})
}

// noWay refuses: other tickets are told, and this one is not held up for as long as its
// workflow is as it is.
func noWay(doing, from, want string, done bool, all []transition) error {
	key, what := "jira.openStatus", cmp.Or(want, "any that is not done")
	if done {
		key, what = "jira.doneStatus", cmp.Or(want, "any that is done")
	}
	var lead []string
	for _, t := range all {
		lead = append(lead, t.To.Name)
	}
	return fmt.Errorf("%w: %s: from %q the workflow leads the account to %q, and not to %s: set %s, or let the workflow lead there", notice.ErrRefused, doing, from, lead, what, key)
}

// with is a transition as it is asked for, with the resolution where its screen has one.
func (j *Jira) with(doing string, t transition) (map[string]any, error) {
	body := map[string]any{"transition": map[string]any{"id": t.ID}}
	for id, f := range t.Fields {
		switch {
		case id == "resolution" && j.opts.Resolution != "":
			body["fields"] = map[string]any{id: map[string]any{"name": j.opts.Resolution}}
		case id == "resolution" && f.Required && !f.Default:
			return nil, fmt.Errorf("%w: %s: the transition %q wants a resolution: set jira.resolution", notice.ErrRefused, doing, t.Name)
		case f.Required && !f.Default:
			return nil, fmt.Errorf("%w: %s: the transition %q wants the field %s (%s), which nobody can know: take it off that screen, or set another status", notice.ErrRefused, doing, t.Name, f.Name, id)
		}
	}
	return body, nil
}
