package diagnosis

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

// Substance is equal for diagnoses that tell people the same: the same causes on the same
// nodes, the same fixes at the same price, for pods of the same priority. Words, ages, and how
// many pods wait are not in it.
func (d Diagnosis) Substance() ([sha256.Size]byte, error) {
	d.Headline, d.Knowledge, d.Drawing, d.Pods = "", nil, nil, WaitingPods{Since: d.Pods.Since.Truncate(time.Second), Priority: d.Pods.Priority}
	causes := make([]Cause, len(d.Causes))
	for i, c := range d.Causes {
		causes[i] = Cause{ID: c.ID, Certainty: c.Certainty, Nodes: c.Nodes}
	}
	nodes := make([]NodeBlockers, len(d.Nodes))
	for i, n := range d.Nodes {
		nodes[i] = NodeBlockers{Name: n.Name, Blockers: make([]Blocker, len(n.Blockers))}
		for k, b := range n.Blockers {
			nodes[i].Blockers[k] = Blocker{Plugin: b.Plugin, Cause: b.Cause}
		}
	}
	fixes := make([]Fix, len(d.Fixes))
	for i, f := range d.Fixes {
		f.Title, f.Steps, f.Commands, f.Proof.Why, f.Cost.Minutes = "", nil, nil, "", 0
		fixes[i] = f
	}
	d.Causes, d.Nodes, d.Fixes, d.Unread = causes, nodes, fixes, make([]string, len(d.Unread))
	text, err := json.Marshal(d)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("write the substance of a diagnosis: %w", err)
	}
	return sha256.Sum256(text), nil
}
