package diagnosis

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/watcher/incident"
)

// MaxMessage is what a diagnosis that travels stays below, in bytes, whatever the cluster
// is and whatever texts hold: a quarter of the megabyte that NATS takes by default.
const MaxMessage = 256 << 10

// Summary is a Diagnosis as it travels, over the bus and to people. Nodes with the same
// blockers are one group, long lists and texts are cut, and what was cut is counted. It has
// no actions: who carries a fix out proves it again, and Plan names what was proved.
//
// The whole is not kept anywhere, for it is a function of the cluster: `unpend why -o json`
// makes it again, with every node and every blocker.
type Summary struct {
	Incident  string            `json:"incident"`
	Alike     string            `json:"alike,omitempty"`
	Workload  incident.Ref      `json:"workload"`
	Pods      WaitingPods       `json:"pods"`
	Requests  map[string]string `json:"requests"`
	Claims    []ClaimedDevices  `json:"claims,omitempty"`
	Headline  string            `json:"headline"`
	Drawing   *Drawing          `json:"drawing,omitempty" cut:"never"` // as a whole, or not at all
	Causes    []CauseSummary    `json:"causes"`
	Nodes     []NodeGroup       `json:"nodes"` // the largest first
	NodeCount int               `json:"nodeCount"`
	Fixes     []FixSummary      `json:"fixes"`
	Knowledge []knowledge.Hit   `json:"knowledge"`
	Unread    []string          `json:"unread"`
	// LeftOut counts, by the path of a field, the elements of lists that were left out and
	// the texts that were cut.
	LeftOut map[string]int `json:"leftOut,omitempty"`
}

// CauseSummary is a Cause with the first of its nodes.
type CauseSummary struct {
	ID        CauseID    `json:"id"`
	Certainty Certainty  `json:"certainty"`
	Says      string     `json:"says"`
	Nodes     []string   `json:"nodes" cut:"whole"`
	NodeCount int        `json:"nodeCount"`
	Evidence  []Evidence `json:"evidence"`
}

// NodeGroup is nodes that the same blockers keep the pod from.
type NodeGroup struct {
	Names    []string  `json:"names" cut:"whole"` // the first by name
	Count    int       `json:"count"`
	Blockers []Blocker `json:"blockers"`
}

// FixSummary is a Fix without its actions.
type FixSummary struct {
	ID                int       `json:"id"`
	Kind              FixKind   `json:"kind"`
	Kinds             []FixKind `json:"kinds"`
	Title             string    `json:"title"`
	Automatic         bool      `json:"automatic"`
	Class             Class     `json:"class"`
	Held              string    `json:"held,omitempty"`
	Cost              Cost      `json:"cost"`
	EvictionCount     int       `json:"evictionCount"`
	RestartCount      int       `json:"restartCount"`
	Effect            *Effect   `json:"effect"`
	Conflicts         []string  `json:"conflicts,omitempty"`
	Record            *Record   `json:"record,omitempty"`
	Risk              Risk      `json:"risk"`
	Mechanism         Mechanism `json:"mechanism"`
	HardwareEvictions *int      `json:"hardwareEvictions,omitempty"`
	Proof             Proof     `json:"proof"`
	Steps             []string  `json:"steps"`
	Commands          []string  `json:"commands" cut:"whole"` // half a command does something else
	Plan              string    `json:"plan"`
}

// Message is the JSON of the diagnosis's Summary, below MaxMessage bytes. An error says that
// a time in it has no JSON.
func (d Diagnosis) Message() ([]byte, error) {
	whole := d.summary()
	var body []byte
	for _, l := range sizes {
		var err error
		if body, err = json.Marshal(l.cut(whole)); err != nil {
			return nil, fmt.Errorf("encode the diagnosis of %s: %w", d.Incident, err)
		}
		if len(body) < MaxMessage {
			break
		}
	}
	return body, nil
}

// Travelled is the Summary as it comes out of a Message.
func (d Diagnosis) Travelled() (s Summary, err error) {
	body, err := d.Message()
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("read the diagnosis of %s: %w", d.Incident, err)
	}
	return s, nil
}

// summary is the diagnosis with its nodes in groups; nothing is cut yet.
func (d Diagnosis) summary() Summary {
	s := Summary{Incident: d.Incident, Alike: d.Alike, Workload: d.Workload, Pods: d.Pods, Requests: d.Requests, Claims: d.Claims, Headline: d.Headline, Drawing: d.Drawing,
		Causes: []CauseSummary{}, Nodes: groups(d.Nodes), NodeCount: len(d.Nodes), Fixes: []FixSummary{}, Knowledge: d.Knowledge, Unread: d.Unread}
	if d.Drawing != nil && len(d.Drawing.Before)+len(d.Drawing.After) > maxSlots {
		s.Drawing, s.LeftOut = nil, map[string]int{"drawing": 1}
	}
	for _, c := range d.Causes {
		s.Causes = append(s.Causes, CauseSummary{c.ID, c.Certainty, c.Says, c.Nodes, len(c.Nodes), c.Evidence})
	}
	for _, f := range d.Fixes {
		s.Fixes = append(s.Fixes, FixSummary{f.ID, f.Kind, f.Kinds, f.Title, f.Automatic, f.Class, f.Held, f.Cost, len(f.Cost.Evictions), len(f.Cost.Restarts), f.Effect, f.Conflicts, f.Record, f.Risk, f.Mechanism, f.HardwareEvictions, f.Proof, f.Steps, f.Commands, f.Plan})
	}
	return s
}

// groups are the nodes by their blockers, the largest group first.
func groups(nodes []NodeBlockers) []NodeGroup {
	by := map[[sha256.Size]byte]*NodeGroup{}
	for _, n := range nodes {
		alike := sha256.New()
		for _, b := range n.Blockers {
			fmt.Fprintf(alike, "%d %s %d %s %s\n", len(b.Plugin), b.Plugin, len(b.Reason), b.Reason, b.Cause)
		}
		key := [sha256.Size]byte(alike.Sum(nil))
		if by[key] == nil {
			by[key] = &NodeGroup{Blockers: n.Blockers}
		}
		by[key].Names = append(by[key].Names, n.Name)
		by[key].Count++
	}
	out := make([]NodeGroup, 0, len(by))
	for _, g := range by {
		slices.Sort(g.Names)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b NodeGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Names[0], b.Names[0]))
	})
	return out
}
