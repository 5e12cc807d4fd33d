package web

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
)

// Desk takes what a reader decides. Everything is written with their own token. Errors that
// are plan.ErrStale or plan.ErrRefused are told to the reader as they are: nothing was written.
type Desk interface {
	// Try finds the plan again on the cluster as it is now, and writes nothing.
	Try(ctx context.Context, token, incident, plan string) (Trial, error)
	// Approve finds it again, records it, and says yes. Waits says why that does not begin
	// it, where others have to say so too.
	Approve(ctx context.Context, token, incident, plan string) (waits string, err error)
	// Reject says no.
	Reject(ctx context.Context, token, incident, plan, reason string) error
}

// Trial is what a plan would do now.
type Trial struct {
	Steps   []string
	Held    string // why guard-rails would not let it begin; empty: they would
	Persons string // why more than one has to approve it; empty: one is enough
}

// mostTrials are made at once: each reads the cluster.
const mostTrials = 2

var planHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// closed says why a fix cannot be approved here; empty when it can.
func (p *Page) closed(i notice.Proposal, f diagnosis.FixSummary) string {
	switch {
	case !i.Undecided():
		return "Nothing can be chosen now: see the plan above."
	case !f.Automatic:
		return "By hand: a person does this, unpend does not."
	case f.Held != "":
		return "Held back now: " + clean(f.Held)
	case f.Class == diagnosis.MusicalChair:
		return "Not offered: as many would wait afterwards as do now."
	case !planHash.MatchString(f.Plan):
		return "It has no plan."
	case p.opts.Desk == nil:
		return "At a terminal: kubectl unpend approve " + clean(i.Incident) + "#" + strconv.Itoa(f.ID)
	}
	return ""
}

// fix is the one that a request is about, if it may be decided on; else that was said. It is
// the plan that the reader saw, or none.
func (p *Page) fix(w http.ResponseWriter, r *http.Request, who *reader, hash string) (notice.Proposal, diagnosis.FixSummary, bool) {
	i, ok := p.one(w, r, who)
	if !ok {
		return i, diagnosis.FixSummary{}, false
	}
	if i.Finding != nil {
		for _, f := range i.Finding.Fixes {
			switch {
			case strconv.Itoa(f.ID) != r.PathValue("fix"):
			case f.Plan != hash:
				p.answer(w, r, who, i, http.StatusConflict, "The plan has changed", "What you have seen is no longer the plan: look at it again. Nothing was written.")
				return i, f, false
			case p.closed(i, f) != "":
				p.answer(w, r, who, i, http.StatusConflict, "Not now", p.closed(i, f))
				return i, f, false
			default:
				return i, f, true
			}
		}
	}
	p.answer(w, r, who, i, http.StatusConflict, "That fix is gone", "The diagnosis has changed: look at it again. Nothing was written.")
	return i, diagnosis.FixSummary{}, false
}

// answer tells a reader what became of what they asked of an incident.
func (p *Page) answer(w http.ResponseWriter, r *http.Request, who *reader, i notice.Proposal, status int, title, text string) {
	p.render(w, r, status, head{Title: title, User: who.user, At: "incidents"}, message{title, text, incidentPath(i.Incident), headline(i)}.node())
}

// consent shows what a plan costs, who is stopped, every step and its hash, and after all of
// that the button.
func (p *Page) consent(w http.ResponseWriter, r *http.Request, who *reader) {
	i, f, ok := p.fix(w, r, who, r.URL.Query().Get("plan"))
	if !ok {
		return
	}
	body := consentPage{ID: i.Incident, Headline: headline(i), Fix: p.fixOf(i, f, false)}
	may, err := who.may(r.Context(), authorizationv1.ResourceAttributes{Verb: "create", Group: "unpend.dev", Resource: "approvals"})
	if err != nil {
		p.trouble(w, r, err)
		return
	}
	if !may {
		body.Denied, body.Steps = "You may not create approvals.unpend.dev, which approving is: ask who administers the cluster.", f.Steps
		p.render(w, r, http.StatusOK, head{Title: "Fix " + strconv.Itoa(f.ID), User: who.user, At: "incidents"}, body.node())
		return
	}
	trial, err := p.try(r.Context(), who, i.Incident, f.Plan)
	if err != nil {
		p.refused(w, r, who, i, err)
		return
	}
	v, err := p.veilOf(r.Context(), who, i.Incident, trial)
	if err != nil {
		p.trouble(w, r, err)
		return
	}
	for _, s := range trial.Steps {
		body.Steps = append(body.Steps, v.text(s))
	}
	body.Held, body.Persons = v.text(trial.Held), v.text(trial.Persons)
	if v.err != nil {
		p.trouble(w, r, v.err)
		return
	}
	p.render(w, r, http.StatusOK, head{Title: "Fix " + strconv.Itoa(f.ID), User: who.user, At: "incidents"}, body.node())
}

// decide takes a yes or a no.
func (p *Page) decide(w http.ResponseWriter, r *http.Request, who *reader) {
	if err := r.ParseForm(); err != nil {
		p.badForm(w, r, err)
		return
	}
	i, f, ok := p.fix(w, r, who, r.PostForm.Get("plan"))
	if !ok {
		return
	}
	var waits string
	var err error
	switch reason := strings.TrimSpace(r.PostForm.Get("reason")); r.PostForm.Get("decision") {
	case "approve":
		waits, err = p.approve(r.Context(), who, i.Incident, f.Plan)
	case "reject":
		err = p.opts.Desk.Reject(r.Context(), who.token, i.Incident, f.Plan, reason)
	default:
		p.answer(w, r, who, i, http.StatusBadRequest, "Not understood", "Say approve or reject.")
		return
	}
	switch {
	case err != nil:
		p.refused(w, r, who, i, err)
	case waits != "":
		p.answer(w, r, who, i, http.StatusAccepted, "Recorded", "It waits for others to approve it: "+clean(waits))
	default:
		http.Redirect(w, r, incidentPath(i.Incident), http.StatusSeeOther)
	}
}

func (p *Page) try(ctx context.Context, who *reader, incident, hash string) (Trial, error) {
	free, err := p.turn(ctx)
	if err != nil {
		return Trial{}, err
	}
	defer free()
	return p.opts.Desk.Try(ctx, who.token, incident, hash)
}

func (p *Page) approve(ctx context.Context, who *reader, incident, hash string) (string, error) {
	free, err := p.turn(ctx)
	if err != nil {
		return "", err
	}
	defer free()
	return p.opts.Desk.Approve(ctx, who.token, incident, hash)
}

// turn waits until there is room to read the cluster.
func (p *Page) turn(ctx context.Context) (free func(), err error) {
	select {
	case p.trials <- struct{}{}:
		return func() { <-p.trials }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refused says why nothing was decided.
func (p *Page) refused(w http.ResponseWriter, r *http.Request, who *reader, i notice.Proposal, err error) {
	v, cannot := p.veilOf(r.Context(), who, i.Incident, err.Error())
	if cannot != nil {
		p.trouble(w, r, cannot)
		return
	}
	says := clean(v.text(err.Error()))
	switch {
	case v.err != nil:
		p.trouble(w, r, v.err)
	case errors.Is(err, plan.ErrStale):
		p.answer(w, r, who, i, http.StatusConflict, "The plan is stale", says)
	case errors.Is(err, plan.ErrRefused):
		p.answer(w, r, who, i, http.StatusForbidden, "Refused", says)
	default:
		p.opts.Logger.WarnContext(r.Context(), "a decision could not be taken", "incident", i.Incident, "user", who.user, "error", err)
		p.answer(w, r, who, i, http.StatusServiceUnavailable, "Not decided", "It could not be found out whether that is still the plan. Nothing is lost: try again.")
	}
}
