package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// incidentPage is what its template is given.
type incidentPage struct {
	ID, Headline, Workload, Kind, Wants, Waiting string
	Since, Over                                  moment
	Facts                                        moment // when they were read
	Plans                                        []planView
	Found                                        bool // there is a finding
	Alike                                        string
	Causes                                       []causeView
	Matrix                                       *matrix
	Drawing                                      *drawingView
	Fixes                                        []fixView
	LeftOut                                      int // fixes
	Unread                                       []string
	Knowledge                                    []hit
	SeenFinding, SeenPlans                       string
}

// planView is where a plan stands.
type planView struct {
	Plan, Title, State, Reason, Step, By, Node string
	Since, Began                               moment
	Took                                       string
	Done, Of                                   int // of its steps; 0: not under way
	Live, Parked                               bool
	Audit                                      string
}

type causeView struct {
	ID, Says, Certainty string
	Nodes               string
	Evidence            []diagnosis.Evidence
}

type fixView struct {
	diagnosis.FixSummary
	Runs, Stops, Takes string
	Best               bool
	Who                []diagnosis.PodName // is stopped
	More               int                 // of them are not named
	Class              string
	Offered            bool // may be approved here
	Why                string
	Closed             string // why not
	Commands           []string
	Hidden             int // commands that name what is covered
}

type hit struct {
	knowledge.Hit
	Link string // empty: nothing that a browser opens
	When moment
}

// incident shows one, with all that is known of it.
func (p *Page) incident(w http.ResponseWriter, r *http.Request, who *reader) {
	i, ok := p.one(w, r, who)
	if !ok {
		return
	}
	body := p.incidentPage(i)
	h := head{Title: body.Headline, User: who.user, At: "incidents", Refresh: 30}
	if slices.ContainsFunc(body.Plans, func(v planView) bool { return v.Live }) {
		h.Refresh = 3
	}
	p.render(w, r, http.StatusOK, "incident", h, body)
}

// one is the incident that is asked for, covered for the reader; when there is none for
// them, that has been said.
func (p *Page) one(w http.ResponseWriter, r *http.Request, who *reader) (notice.Proposal, bool) {
	i, ok := p.board.get(r.PathValue("id"))
	if !ok {
		p.missing(w, r)
		return i, false
	}
	v, err := p.veil(r.Context(), who, []notice.Proposal{i})
	if err == nil {
		i, ok = v.proposal(i)
		err = v.err
	}
	switch {
	case err != nil:
		p.trouble(w, r, err)
		return i, false
	case !ok:
		p.missing(w, r)
	}
	return i, ok
}

func (p *Page) incidentPage(i notice.Proposal) incidentPage {
	now := p.opts.Now()
	out := incidentPage{ID: i.Incident, Headline: headline(i), Over: at(i.Resolved, now), Facts: at(i.Read, now), SeenFinding: digest(i.Finding), SeenPlans: digest(i.Plans, i.Resolved)}
	for _, n := range slices.Backward(i.Plans) {
		out.Plans = append(out.Plans, planOf(n, now))
	}
	d := i.Finding
	if d == nil {
		return out
	}
	out.Found, out.Workload, out.Kind, out.Wants, out.Since, out.Alike = true, clean(d.Workload.Namespace+"/"+d.Workload.Name), clean(d.Workload.Kind), clean(wording.Wants(*d)), at(d.Pods.Since, now), d.Alike
	out.Waiting = count(d.Pods.Waiting, "pod waits", "pods wait")
	for _, c := range d.Causes {
		v := causeView{ID: string(c.ID), Says: clean(c.Says), Certainty: string(c.Certainty), Evidence: c.Evidence}
		if c.NodeCount > 0 {
			v.Nodes = count(c.NodeCount, "node", "nodes")
		}
		out.Causes = append(out.Causes, v)
	}
	out.Matrix, out.Drawing = matrixOf(*d), drawingOf(*d)
	for n, f := range d.Fixes {
		out.Fixes = append(out.Fixes, p.fixOf(i, f, n == 0))
	}
	out.LeftOut, out.Unread = d.LeftOut["fixes"], d.Unread
	for _, k := range d.Knowledge {
		out.Knowledge = append(out.Knowledge, hit{k, linkOf(k.URL), at(k.At, now)})
	}
	return out
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

// classes say how much a fix helps.
var classes = map[diagnosis.Class]string{
	diagnosis.StopsNobody: "stops nobody", diagnosis.HarmsNobody: "nobody waits for it afterwards", diagnosis.HarmsLess: "who then waits matters less, or is fewer",
	diagnosis.WaitsForMore: "something else has to happen first", diagnosis.MusicalChair: "as many wait afterwards", diagnosis.NotProved: "not proved",
}

func (p *Page) fixOf(i notice.Proposal, f diagnosis.FixSummary, best bool) fixView {
	v := fixView{FixSummary: f, Runs: runsOf(f), Stops: stopsOf(f), Takes: takesOf(f), Best: best, Who: slices.Concat(f.Cost.Evictions, f.Cost.Restarts), Class: classes[f.Class], Why: clean(f.Proof.Why)}
	v.More = f.EvictionCount + f.RestartCount - len(v.Who)
	for _, c := range f.Commands {
		if command(c) {
			v.Commands = append(v.Commands, c)
		} else {
			v.Hidden++
		}
	}
	v.Closed = p.closed(i, f)
	v.Offered = v.Closed == ""
	return v
}

// linkOf is an address that a browser may open: a document's on the web. What is in a folder
// has none, and other schemes do things.
func linkOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	return u.String()
}

// matrix is what keeps the pod from which nodes: nodes with the same blockers are a row.
type matrix struct {
	Columns []column
	Rows    []matrixRow
	Rest    string // nodes that are not shown
	Total   string
}

type column struct{ Cause, Words string }

type matrixRow struct {
	Nodes   string
	Names   string
	Cells   []string // what the scheduler said, by column; empty: that does not keep it away
	Reasons []diagnosis.Blocker
}

// matrixOf is nil where no node was looked at. The root cause's column is the first.
func matrixOf(d diagnosis.Summary) *matrix {
	if len(d.Nodes) == 0 {
		return nil
	}
	m, rest := &matrix{Total: count(d.NodeCount, "node", "nodes")}, d.NodeCount
	var ids []diagnosis.CauseID
	for _, g := range d.Nodes {
		for _, b := range g.Blockers {
			ids = append(ids, b.Cause)
		}
	}
	rank := func(id diagnosis.CauseID) int {
		if n := slices.IndexFunc(d.Causes, func(c diagnosis.CauseSummary) bool { return c.ID == id }); n >= 0 {
			return n
		}
		return len(d.Causes)
	}
	slices.SortFunc(ids, func(a, b diagnosis.CauseID) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
	ids = slices.Compact(ids)
	for _, id := range ids {
		m.Columns = append(m.Columns, column{string(id), cmp.Or(id.Words(), string(id))})
	}
	for _, g := range d.Nodes {
		rest -= g.Count
		r := matrixRow{Nodes: count(g.Count, "node", "nodes"), Names: someNames(g.Names, g.Count), Cells: make([]string, len(ids)), Reasons: g.Blockers}
		for _, b := range g.Blockers {
			at := slices.Index(ids, b.Cause)
			r.Cells[at] = strings.TrimPrefix(r.Cells[at]+"; "+clean(b.Plugin+": "+b.Reason), "; ")
		}
		m.Rows = append(m.Rows, r)
	}
	if rest > 0 {
		m.Rest = count(rest, "more node", "more nodes")
	}
	return m
}

// mostNames of nodes are listed in one row.
const mostNames = 6

func someNames(names []string, all int) string {
	shown := names[:min(len(names), mostNames)]
	text := clean(strings.Join(shown, ", "))
	if rest := all - len(shown); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}
