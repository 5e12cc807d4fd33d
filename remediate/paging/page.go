package paging

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// state of a page.
type state string

const (
	firing       state = "firing"
	acknowledged state = "acknowledged" // somebody has approved a fix, which is under way
	over         state = "over"
)

// page is what people are to know of an incident. Texts are clean; each vendor cuts them.
type page struct {
	Key     string    `json:"key"` // the same for the whole life of an incident
	State   state     `json:"state"`
	Grave   bool      `json:"grave,omitempty"` // somebody has to come
	Labels  labels    `json:"labels"`
	Summary string    `json:"summary"`
	Text    string    `json:"text"` // lines
	Since   time.Time `json:"since,omitzero"`

	of notice.Proposal // not kept
}

// labels are what pages are routed and silenced by. They are the same in every vendor.
type labels struct {
	Alert     string `json:"alertname"`
	Severity  string `json:"severity"`
	Cluster   string `json:"cluster,omitempty"`
	Incident  string `json:"incident,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Workload  string `json:"workload,omitempty"` // kind/name
	Cause     string `json:"cause,omitempty"`    // the root's id
	Node      string `json:"node,omitempty"`     // that is parked
}

// sum changes when people see something else, but for the vendor's own clock.
func (p page) sum() string {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // it is ours
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// page of a proposal; one that nobody wants is over.
func (p *Pager) page(of notice.Proposal, wanted bool) page {
	out := page{Key: of.Incident, State: firing, of: of, Labels: labels{Alert: "UnpendPodWaits", Severity: "warning", Cluster: p.Cluster, Incident: of.Incident}, Summary: wording.Clean(wording.Headline(of))}
	if p.ID != "" {
		out.Key += "." + p.ID
	}
	if d := of.Finding; d != nil {
		out.Labels.Namespace, out.Labels.Workload, out.Since = wording.Clean(d.Workload.Namespace), wording.Clean(d.Workload.Kind+"/"+d.Workload.Name), d.Pods.Since
		if len(d.Causes) > 0 {
			out.Labels.Cause = string(d.Causes[0].ID)
		}
	}
	n := of.Plan()
	if at := parked(of); at != nil {
		n, out.Grave = at, true
		out.Labels.Alert, out.Labels.Node = "UnpendNodeParked", wording.Clean(at.Node)
		out.Summary = wording.Clean("node " + at.Node + " is left cordoned, on purpose: " + cmp.Or(at.Reason, at.Title))
		out.Since = at.Since
	}
	if of.Alarm != "" {
		out.Grave, out.Labels.Alert, out.Summary, out.Since = true, "UnpendBreakerOpen", wording.Clean(of.Alarm), of.Read
	}
	if out.Grave {
		out.Labels.Severity = "critical"
	}
	switch {
	case !wanted:
		out.State = over
	case !out.Grave && n != nil && !n.Ended() && len(n.Approvers) > 0:
		out.State = acknowledged
	}
	out.Text = strings.Join(lines(of, n), "\n")
	return out
}

// lines are what a finding and its plan say. How far a plan has come is no reason to tell of
// a page again.
func lines(of notice.Proposal, n *notice.Notice) (out []string) {
	add := func(parts ...string) { out = append(out, wording.Clean(strings.Join(parts, " "))) }
	if d := of.Finding; d != nil && of.Resolved.IsZero() {
		add(wording.Waiting(*d) + ", wants " + wording.Wants(*d))
		for _, r := range wording.Why(*d) {
			add(slices.DeleteFunc([]string{"-", r.Nodes, r.Node, r.Says}, func(s string) bool { return s == "" })...)
		}
		for _, f := range d.Fixes[:min(1, len(d.Fixes))] {
			add("fix:", f.Title, "("+wording.Bill(f)+")")
		}
	}
	if n != nil {
		still := *n
		still.Progress, still.Step = "", ""
		where, what := wording.Standing(still)
		add(where+":", what)
		if len(n.Approvers) > 0 {
			add("approved by", strings.Join(n.Approvers, ", "))
		}
		if n.What == notice.Parked {
			add("kubectl unpend release", n.Node)
		}
	}
	if of.Alarm == "" {
		add("kubectl unpend show", of.Incident)
	} else {
		add("kubectl unpend status")
	}
	return out
}
