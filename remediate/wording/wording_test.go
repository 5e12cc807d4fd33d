package wording_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// Nodes are counted once, the root cause's first; one node is named, and what is not proven
// is marked.
func TestWhy(t *testing.T) {
	blocked := func(by ...diagnosis.CauseID) (all []diagnosis.Blocker) {
		for _, id := range by {
			all = append(all, diagnosis.Blocker{Cause: id})
		}
		return all
	}
	d := diagnosis.Summary{NodeCount: 30, Causes: []diagnosis.CauseSummary{{ID: "A", Certainty: diagnosis.Proven, Says: "a", NodeCount: 4}, {ID: "B", Certainty: diagnosis.Likely, Says: "b", NodeCount: 4}, {ID: "C", Certainty: diagnosis.Proven, Says: "c"}},
		Nodes: []diagnosis.NodeGroup{{Names: []string{"n1"}, Count: 1, Blockers: blocked("B", "A", "A")}, {Names: []string{"n2", "n3"}, Count: 3, Blockers: blocked("A")}, {Names: []string{"n5"}, Count: 1}}}
	want := []wording.Reason{{Says: "c (C)"}, {Nodes: "3 nodes", Says: "a (A)"}, {Nodes: "1 node", Says: "a (A); also b (B, likely)", Node: "n1"}, {Nodes: "1 node", Says: "no blocker there", Node: "n5"}, {Nodes: "25 nodes", Says: "for other reasons"}}
	if diff := cmp.Diff(want, wording.Why(d)); diff != "" {
		t.Error(diff)
	}
	d.Nodes = append(d.Nodes, diagnosis.NodeGroup{Names: []string{"n6", "n7"}, Count: 2, Blockers: blocked("B")})
	got := wording.Why(d)
	if want := (wording.Reason{Nodes: "26 nodes", Says: "for other reasons"}); len(got) != 4 || got[3] != want {
		t.Errorf("%+v", got)
	}
	if got := wording.Why(diagnosis.Summary{}); got != nil {
		t.Errorf("%+v", got)
	}
}

// A plan is told by where it stands.
func TestStanding(t *testing.T) {
	at := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		n    notice.Notice
		want string
	}{
		{notice.Notice{What: notice.Running, Progress: "3/9", Step: "evict a", Title: "x"}, "step 3/9: evict a"},
		{notice.Notice{What: notice.Running, Plan: "0123456789abcdef", Title: "x"}, "plan 0123456789ab is being carried out: x"},
		{notice.Notice{What: notice.Succeeded, Began: at, Since: at.Add(252 * time.Second), Title: "x"}, "done in 4m12s: x"},
		{notice.Notice{What: notice.Succeeded, Plan: "p", Since: at, Title: "x"}, "plan p is done: x"},
		{notice.Notice{What: "later", Plan: "p", Title: "x"}, "plan p later: x"},
	} {
		if where, what := wording.Standing(tc.n); where+": "+what != tc.want {
			t.Errorf("%s: %s, want %s", where, what, tc.want)
		}
	}
}

// A fix has its price, who pays it, and what keeps it from being carried out.
func TestFixes(t *testing.T) {
	unknown := false
	pod := diagnosis.PodName{Namespace: "ml", Name: "a"}
	for _, tc := range []struct {
		f    diagnosis.FixSummary
		want string
	}{
		{diagnosis.FixSummary{Risk: diagnosis.LowRisk}, "stops nobody · risk low|by hand|||"},
		{diagnosis.FixSummary{Risk: diagnosis.LowRisk, Record: &diagnosis.Record{Worked: 4, Of: 5, Minutes: 3}}, "stops nobody · risk low · worked here 4 times of 5, in about 3 min|by hand|||"},
		{diagnosis.FixSummary{Risk: diagnosis.LowRisk, Held: "x"}, "stops nobody · risk low|refused now: x|||"},
		{diagnosis.FixSummary{Risk: diagnosis.LowRisk, Automatic: true, Held: "x", Cost: diagnosis.Cost{RestartsKnown: &unknown}}, "stops pods that nobody can name · takes <1 min · risk low|held back now: x|||"},
		{diagnosis.FixSummary{Risk: diagnosis.HighRisk, Automatic: true, Effect: &diagnosis.Effect{Runs: 1, Of: 2, ThenWait: []diagnosis.PodName{pod}}, EvictionCount: 1, Cost: diagnosis.Cost{Minutes: 4, Evictions: []diagnosis.PodName{pod}}},
			"1 of 2 pods run · stops 1 pod · takes ~4 min · risk high||ml/a|it then waits|"},
		{diagnosis.FixSummary{Risk: diagnosis.LowRisk, Effect: &diagnosis.Effect{Runs: 2, Of: 2, ThenWait: []diagnosis.PodName{pod}}, EvictionCount: 2, Cost: diagnosis.Cost{Evictions: []diagnosis.PodName{pod, pod}}},
			"2 of 2 pods run · stops 2 pods · risk low|by hand|ml/a, ml/a|1 of them then waits|ml/a"},
		{diagnosis.FixSummary{Risk: diagnosis.HighRisk, Automatic: true, EvictionCount: 9, RestartCount: 1, Cost: diagnosis.Cost{Evictions: []diagnosis.PodName{pod, pod, pod}, Restarts: []diagnosis.PodName{pod}, RestartsKnown: &unknown}},
			"stops at least 10 pods · takes <1 min · risk high||ml/a, ml/a, ml/a and 7 more||"},
		{diagnosis.FixSummary{Risk: diagnosis.HighRisk, Effect: &diagnosis.Effect{Runs: 1, Of: 1}, EvictionCount: 2, Cost: diagnosis.Cost{Evictions: []diagnosis.PodName{pod, pod}}, Proof: diagnosis.Proof{Victims: diagnosis.VictimsGone}},
			"1 of 1 pod runs · stops 2 pods · risk high|by hand|ml/a, ml/a|not all come back: nothing makes some of them again|"},
		{diagnosis.FixSummary{Risk: diagnosis.LowRisk, Effect: &diagnosis.Effect{Runs: 1, Of: 1}, EvictionCount: 2, Cost: diagnosis.Cost{Evictions: []diagnosis.PodName{pod, pod}}, Proof: diagnosis.Proof{Victims: diagnosis.VictimsLand}},
			"1 of 1 pod runs · stops 2 pods · risk low|by hand|ml/a, ml/a|all run again afterwards|"},
	} {
		if got := strings.Join([]string{wording.Price(tc.f), wording.Held(tc.f), wording.Stopped(tc.f), wording.Fate(tc.f), wording.ThenWait(tc.f)}, "|"); got != tc.want {
			t.Errorf("%s, want\n%s", got, tc.want)
		}
	}
	f := diagnosis.FixSummary{Automatic: true, Plan: strings.Repeat("a", 64)}
	musical := f
	musical.Class = diagnosis.MusicalChair
	if got := fmt.Sprint(wording.Offered(f), wording.Offered(diagnosis.FixSummary{Automatic: true}), wording.Offered(diagnosis.FixSummary{Plan: f.Plan}), wording.Offered(musical)); got != "true false false false" {
		t.Error(got)
	}
}

// A text is cut where Java and browsers count, never within a character.
func TestFit(t *testing.T) {
	for in, want := range map[string]string{"abc": "abc", "abcd": "ab…", "🔥a": "🔥a", "🔥🔥": "🔥…", "a🔥🔥": "a…"} {
		if got := wording.Fit(in, 3); got != want || wording.Length(got) > 3 {
			t.Errorf("%s: %s", in, got)
		}
	}
}
