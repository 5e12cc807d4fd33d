package web

import (
	"net/http"
	"slices"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// incidentPage is what it shows.
type incidentPage struct {
	ID, Headline, Workload, Kind, Wants, Waiting string
	Since, Over                                  moment
	Facts                                        moment // when they were read
	Plans                                        []planView
	Said                                         []saidView
	Found                                        bool // there is a finding
	Alike                                        string
	Causes                                       []causeView
	Matrix                                       *matrix
	Drawing                                      *drawingView
	Fixes                                        []fixView
	LeftOut                                      int // fixes
	Unread                                       []string
	Knowledge                                    []hit
	Model                                        string   // what its words stand under
	Words                                        []string // of a model
	SeenFinding, SeenPlans                       string
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
	p.render(w, r, http.StatusOK, h, body.node())
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
	out := incidentPage{ID: i.Incident, Headline: headline(i), Over: at(i.Resolved, now), Facts: at(i.Read, now), SeenFinding: findingSeen(i), SeenPlans: seenPlans(i), Said: saidOf(i, now)}
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
	out.Model, out.Words = wording.Reworded(i)
	return out
}
