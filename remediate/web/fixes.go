package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

type fixView struct {
	diagnosis.FixSummary
	Runs, Stops, Takes string
	Fate               string // what becomes of who stops, as a sentence begins
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

// classes say how much a fix helps.
var classes = map[diagnosis.Class]string{
	diagnosis.StopsNobody: "stops nobody", diagnosis.HarmsNobody: "nobody waits for it afterwards", diagnosis.HarmsLess: "who then waits matters less, or is fewer",
	diagnosis.WaitsForMore: "something else has to happen first", diagnosis.MusicalChair: "as many wait afterwards", diagnosis.NotProved: "not proved",
}

func (p *Page) fixOf(i notice.Proposal, f diagnosis.FixSummary, best bool) fixView {
	v := fixView{FixSummary: f, Runs: wording.Runs(f), Stops: wording.Stops(f), Takes: wording.Takes(f), Fate: sentence(wording.Fate(f)), Best: best, Who: slices.Concat(f.Cost.Evictions, f.Cost.Restarts), Class: classes[f.Class], Why: clean(f.Proof.Why)}
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

// node is the fix of an incident.
func (v fixView) node(incident string) g.Node {
	class, id := "fix", "fix-"+strconv.Itoa(v.ID)
	if v.Best {
		class = "fix best"
	}
	return h.Article(h.Class(class), h.Aria("labelledby", id), lines(
		h.H3(h.ID(id), g.Textf("%d. %s", v.ID, clean(v.Title))),
		price(v),
		stopped(v),
		h.P(v.verdict(), g.If(v.Class != "", g.Group{g.Text(" "), muted(g.Text("(" + v.Class + ")"))})),
		g.Iff(v.Record != nil, func() g.Node { return note("muted", "It "+v.Record.String()+".") }),
		g.If(len(v.Conflicts) > 0, note("warn", "Wants the same room as "+clean(strings.Join(v.Conflicts, ", "))+".")),
		g.Iff(len(v.Steps)+len(v.Commands) > 0, v.details),
		v.way(incident),
	))
}

// verdict is whether it was proved that the fix works.
func (v fixView) verdict() g.Node {
	return g.Group{h.B(g.Text(string(v.Proof.Verdict))), g.Text(": " + v.Why)}
}

func (v fixView) details() g.Node {
	return h.Details(h.Summary(g.Text("Steps and commands")), lines(
		g.If(len(v.Steps) > 0, h.Ol(g.Map(v.Steps, item))),
		g.Map(v.Commands, func(c string) g.Node { return h.Pre(h.TabIndex("0"), g.Text(c)) }),
		g.If(v.Hidden > 0, note("muted", fmt.Sprintf("%d more name a namespace that you may not read.", v.Hidden))),
	))
}

// way is where the fix is approved, or why it is not.
func (v fixView) way(incident string) g.Node {
	if !v.Offered {
		return h.P(h.Class("muted"), g.Text(v.Closed))
	}
	return h.P(h.A(h.Class("button"), href(fixPath(incident, v.ID)+"?plan="+url.QueryEscape(v.Plan)), g.Textf("Review fix %d to approve", v.ID)),
		g.Text(" "), muted(g.Text("plan "), code(shortPlan(v.Plan))))
}
