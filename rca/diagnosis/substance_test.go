package diagnosis

import (
	"testing"
	"time"
)

// Words, ages and counts make no news of a diagnosis; causes, nodes and prices do.
func TestSubstance(t *testing.T) {
	made := func(edit func(*Diagnosis)) [32]byte {
		d := Diagnosis{Incident: "gpu-1", Headline: "waits 5 min", Pods: WaitingPods{Waiting: 1, Names: []string{"a"}, Since: time.Unix(1000, 0)},
			Causes: []Cause{{ID: MIGLayoutMismatch, Certainty: Proven, Says: "for 5 min", Nodes: []string{"gpu-1"}}},
			Nodes:  []NodeBlockers{{Name: "gpu-1", Blockers: []Blocker{{Plugin: "NodeResourcesFit", Reason: "x", Cause: MIGLayoutMismatch}}}},
			Fixes:  []Fix{{ID: 1, Kind: RepartitionGPU, Title: "x", Cost: Cost{Minutes: 4}, Plan: "aa"}}, Unread: []string{"5 min old"}}
		edit(&d)
		sum, err := d.Substance()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	before := made(func(*Diagnosis) {})
	for name, c := range map[string]struct {
		edit func(*Diagnosis)
		news bool
	}{
		"age": {edit: func(d *Diagnosis) {
			d.Headline, d.Causes[0].Says, d.Unread[0] = "waits 6 min", "for 6 min", "6 min old"
		}},
		"count":     {edit: func(d *Diagnosis) { d.Pods.Waiting, d.Pods.Names = 2, []string{"a", "b"} }},
		"minutes":   {edit: func(d *Diagnosis) { d.Fixes[0].Cost.Minutes, d.Nodes[0].Blockers[0].Reason = 5, "y" }},
		"priority":  {edit: func(d *Diagnosis) { d.Pods.Priority = new(int32) }, news: true},
		"since":     {edit: func(d *Diagnosis) { d.Pods.Since = time.Unix(2000, 0) }, news: true},
		"cause":     {edit: func(d *Diagnosis) { d.Causes[0].ID = MIGConfigFailed }, news: true},
		"certainty": {edit: func(d *Diagnosis) { d.Causes[0].Certainty = Likely }, news: true},
		"blocker":   {edit: func(d *Diagnosis) { d.Nodes[0].Blockers[0].Cause = MIGConfigFailed }, news: true},
		"node":      {edit: func(d *Diagnosis) { d.Nodes = append(d.Nodes, NodeBlockers{Name: "gpu-2"}) }, news: true},
		"plan":      {edit: func(d *Diagnosis) { d.Fixes[0].Plan = "bb" }, news: true},
		"price":     {edit: func(d *Diagnosis) { d.Fixes[0].Cost.Evictions = []PodName{{"a", "b"}} }, news: true},
		"alike":     {edit: func(d *Diagnosis) { d.Alike = "gpu-2" }, news: true},
		"unread":    {edit: func(d *Diagnosis) { d.Unread = nil }, news: true},
	} {
		if got := made(c.edit) != before; got != c.news {
			t.Errorf("another %s: news %t, want %t", name, got, c.news)
		}
	}
}
