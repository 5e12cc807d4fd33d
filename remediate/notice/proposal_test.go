package notice

import (
	"testing"
	"time"
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
