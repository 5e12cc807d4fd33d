package web

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/unpend/unpend/remediate/notice"
)

// planView is where a plan stands.
type planView struct {
	Plan, Title, State, Reason, Step, By, Node string
	Since, Began                               moment
	Took                                       string
	Done, Of                                   int // of its steps; 0: not under way
	Live, Parked                               bool
	Audit                                      string
}

func planOf(n notice.Notice, now time.Time) planView {
	v := planView{Plan: n.Plan, Title: clean(n.Title), State: cmp.Or(states[n.What], clean(n.What)), Reason: clean(n.Reason), Step: clean(n.Step), By: clean(strings.Join(n.Approvers, ", ")), Node: clean(n.Node),
		Since: at(n.Since, now), Began: at(n.Began, now), Live: !n.Ended(), Parked: n.What == notice.Parked, Audit: n.AuditHead}
	if _, err := fmt.Sscanf(n.Progress, "%d/%d", &v.Done, &v.Of); err != nil || v.Of <= 0 || v.Done < 0 || v.Done > v.Of {
		v.Done, v.Of = 0, 0
	}
	if n.What == notice.Succeeded && !n.Began.IsZero() {
		v.Took = n.Since.Sub(n.Began).Round(time.Second).String()
	}
	return v
}

func (v planView) node() g.Node {
	class, hash := "plan", shortPlan(v.Plan)
	if v.Parked {
		class = "plan bad"
	}
	return h.Section(h.Class(class), h.Aria("label", "Plan "+hash), lines(
		h.P(h.B(g.Text("Plan "), code(hash), g.Text(" "+v.State)), g.Text(v.course())),
		g.Iff(v.Of > 0, v.progress),
		g.If(v.Reason != "", h.P(g.Text(v.Reason))),
		g.Iff(v.Parked, v.release),
		g.If(v.Audit != "", h.P(h.Class("muted"), g.Text("Audit trail "), code(v.Audit))),
	))
}

// release is which node somebody has to look at, and how it is given back then.
func (v planView) release() g.Node {
	return h.P(g.Text("Node "), code(v.Node), g.Text(" is cordoned for "), when(v.Since),
		g.Text(" now. Once somebody has looked at it, this gives it back as it was: "), code("kubectl unpend release "+v.Node))
}

// course is how long it took, who wanted it, and what it is.
func (v planView) course() (text string) {
	if v.Took != "" {
		text += " in " + v.Took
	}
	if v.By != "" {
		text += ", approved by " + v.By
	}
	return text + ": " + v.Title
}

func (v planView) progress() g.Node {
	steps := fmt.Sprintf("%d of %d", v.Done, v.Of)
	return h.P(h.Progress(number("max", v.Of), number("value", v.Done), h.Aria("label", "Steps"), g.Text(steps)),
		g.Text(" step "+steps+": "+v.Step+" "), muted(g.Text("for "), when(v.Since)))
}
