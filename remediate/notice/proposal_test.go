package notice

import (
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Of several plans the one under way matters, or else the one that ended last; people may
// choose while none is under way, nor has done what was wanted.
func TestThePlanThatMatters(t *testing.T) {
	at := func(what string, minute int) Notice {
		return Notice{What: what, Plan: what, Since: parked.Since.Add(time.Duration(minute) * time.Minute)}
	}
	for name, tc := range map[string]struct {
		plans     []Notice
		resolved  time.Time
		want      string
		undecided bool
	}{
		"none":                         {want: "", undecided: true},
		"recorded":                     {plans: []Notice{at(Pending, 1)}, want: Pending, undecided: true},
		"under way, after a stale one": {plans: []Notice{at(Stale, 1), at(Running, 2)}, want: Running},
		"under way, though one ended":  {plans: []Notice{at(Undoing, 1), at(Superseded, 2)}, want: Undoing},
		"two have ended":               {plans: []Notice{at(Failed, 2), at(Stale, 1)}, want: Failed, undecided: true},
		"it runs":                      {plans: []Notice{at(Succeeded, 1)}, want: Succeeded},
		"somebody has to come":         {plans: []Notice{at(Parked, 1)}, want: Parked},
		"waits for a guard-rail":       {plans: []Notice{at(Queued, 1)}, want: Queued},
		"nobody waits any more":        {plans: []Notice{at(Rejected, 1)}, resolved: parked.Since, want: Rejected},
	} {
		p := Proposal{Plans: tc.plans, Resolved: tc.resolved}
		got := ""
		if n := p.Plan(); n != nil {
			got = n.What
		}
		if got != tc.want || p.Undecided() != tc.undecided {
			t.Errorf("%s: %q, undecided %v", name, got, p.Undecided())
		}
	}
}

// A finding that is made while a plan changes the cluster does not take the place of the one
// that the plan was approved for; what waits after its end, or again, does.
func TestWhatAPlanWasApprovedForStays(t *testing.T) {
	at := func(minute int) time.Time { return parked.Since.Add(time.Duration(minute) * time.Minute) }
	found := func(cause diagnosis.CauseID, since int, plans ...string) *diagnosis.Summary {
		d := &diagnosis.Summary{Pods: diagnosis.WaitingPods{Since: at(since)}, Causes: []diagnosis.CauseSummary{{ID: cause}}}
		for _, p := range plans {
			d.Fixes = append(d.Fixes, diagnosis.FixSummary{Plan: p})
		}
		return d
	}
	for name, tc := range map[string]struct {
		what     string
		newest   *diagnosis.Summary
		read     int // the plan's notice is of minute 5
		resolved int
		unknown  bool
		want     diagnosis.CauseID
	}{
		"waits for a guard-rail":       {what: Queued, newest: found("Cordoned", 0), read: 4, want: "MIGFull"},
		"under way":                    {what: Running, newest: found("Cordoned", 0), read: 6, want: "MIGFull"},
		"is taken back":                {what: Undoing, newest: found("Cordoned", 0), read: 6, want: "MIGFull"},
		"none is kept any more":        {what: Running, want: "MIGFull"},
		"it is offered still":          {what: Running, newest: found("MIGFragmented", 0, "other", Running), read: 6, want: "MIGFragmented"},
		"nothing was kept":             {what: Running, newest: found("Cordoned", 0), read: 6, unknown: true, want: "Cordoned"},
		"nobody has decided":           {what: Pending, newest: found("Cordoned", 0), read: 4, want: "Cordoned"},
		"it failed":                    {what: Failed, newest: found("Cordoned", 0), read: 4, want: "Cordoned"},
		"it came to nothing":           {what: Stale, newest: found("Cordoned", 0), read: 4, want: "Cordoned"},
		"done":                         {what: Succeeded, newest: found("Cordoned", 0), read: 4, want: "MIGFull"},
		"done, and over":               {what: Succeeded, newest: found("Cordoned", 0), read: 6, resolved: 7, want: "MIGFull"},
		"done, and others of it wait":  {what: Succeeded, newest: found("Cordoned", 0), read: 6, want: "Cordoned"},
		"done, and it waits again":     {what: Succeeded, newest: found("Cordoned", 6), read: 6, want: "Cordoned"},
		"that is over too, without it": {what: Succeeded, newest: found("Cordoned", 6), read: 6, resolved: 7, want: "Cordoned"},
	} {
		p := Proposal{Finding: tc.newest, Read: at(tc.read), Plans: []Notice{{What: tc.what, Plan: tc.what, Since: at(5)}}}
		if tc.resolved > 0 {
			p.Resolved = at(tc.resolved)
		}
		approved := &Found{*found("MIGFull", 0, tc.what), at(1)}
		if tc.unknown {
			approved = nil
		}
		p.Keep(approved)
		want := at(tc.read)
		if tc.want == "MIGFull" {
			want = at(1)
		}
		if p.Finding.Causes[0].ID != tc.want || !p.Read.Equal(want) {
			t.Errorf("%s: %s, read at %s", name, p.Finding.Causes[0].ID, p.Read)
		}
	}
	none := Proposal{Finding: found("Cordoned", 0)}
	if none.Keep(&Found{*found("MIGFull", 0), at(1)}); none.Finding.Causes[0].ID != "Cordoned" {
		t.Error("without a plan it is told of what nobody found")
	}
}
