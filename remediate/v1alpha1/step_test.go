package v1alpha1

import "testing"

// The names of steps stand in the journals of plans that other versions began: they are
// written and read the same for ever.
func TestStepID(t *testing.T) {
	for _, tc := range []struct {
		id, want StepID
	}{
		{StepOf(0, "cordon"), "0/cordon"},
		{StepOf(12, "evict/ml/web-1"), "12/evict/ml/web-1"},
		{BackOf(0, "release"), "undo/0/release"},
	} {
		if tc.id != tc.want {
			t.Errorf("%q, want %q", tc.id, tc.want)
		}
	}
	for id, want := range map[StepID]struct {
		action    int
		ofOne     bool
		takesBack bool
	}{
		"0/cordon":          {0, true, false},
		"12/evict/ml/web-1": {12, true, false},
		"undo/3/park":       {3, true, true},
		"run":               {0, false, false},
		"undo/nomination":   {0, false, true},
		"":                  {0, false, false},
		"7":                 {7, false, false},
		"-1/config":         {0, false, false},
		"config/0":          {0, false, false},
		"99999999999/lock":  {1<<31 - 1, false, false},
	} {
		action, ofOne := id.Action()
		if action != want.action || ofOne != want.ofOne || id.TakesBack() != want.takesBack {
			t.Errorf("%q: action %d (%v), takes back %v; want %+v", id, action, ofOne, id.TakesBack(), want)
		}
	}
}
