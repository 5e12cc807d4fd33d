package guard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
)

// A uid has letters, digits and a few signs, and nothing that a path or a selector reads.
func TestWhatAUIDIsMadeOf(t *testing.T) {
	const good = "09azAZ-._:"
	for r := rune(1); r < 200; r++ {
		in := strings.ContainsRune(good, r) || r > '0' && r < '9' || r > 'a' && r < 'z' || r > 'A' && r < 'Z'
		if notInUID(r) == in {
			t.Errorf("%q: %v", r, in)
		}
	}
}

// The end of the freeze is that of the window that ends last of those that are open; one that
// cannot be read says nothing of it.
func TestUntilWhenItIsFrozen(t *testing.T) {
	window := func(cron string, d time.Duration) Freeze { return Freeze{Cron: cron, Duration: d, Timezone: "UTC"} }
	long, short, over, bad := window("0 11 * * *", 4*time.Hour), window("30 11 * * *", time.Hour), window("0 9 * * *", time.Hour), window("nonsense", time.Hour)
	for name, tc := range map[string]struct {
		windows []Freeze
		want    time.Time
	}{
		"none":               {nil, time.Time{}},
		"none is open":       {[]Freeze{over}, time.Time{}},
		"one":                {[]Freeze{over, short}, noon.Add(30 * time.Minute)},
		"the last of two":    {[]Freeze{short, long}, noon.Add(3 * time.Hour)},
		"whichever is first": {[]Freeze{long, short}, noon.Add(3 * time.Hour)},
		"beside a bad one":   {[]Freeze{bad, short, bad}, noon.Add(30 * time.Minute)},
	} {
		l := Defaults()
		l.Freeze = tc.windows
		if got := l.Figures(View{Now: noon}).FrozenUntil; !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A plan takes every node out of use that it closes, also when it writes to others.
func TestNodesThatAPlanTakes(t *testing.T) {
	r := planFor(1, "gpu-1")
	action := func(verb, kind, name string) {
		r.Spec.Actions = append(r.Spec.Actions, diagnosis.Action{Verb: verb, Target: diagnosis.Target{Kind: kind, Name: name, UID: "u"}})
	}
	action(diagnosis.VerbUncordon, "Node", "gpu-2")
	action(diagnosis.VerbCordon, "Node", "gpu-3")
	action(diagnosis.VerbEvict, "Pod", "p")
	action(diagnosis.VerbCordon, "Node", "gpu-4")
	if got := slices.Collect(takenBy(r)); !slices.Equal(got, []string{"gpu-1", "gpu-3", "gpu-4"}) {
		t.Errorf("taken %q", got)
	}
	if got := slices.Collect(nodesOf(r)); !slices.Equal(got, []string{"gpu-1", "gpu-1", "gpu-2", "gpu-3", "gpu-4"}) {
		t.Errorf("about %q", got)
	}
	for name := range takenBy(r) {
		if name != "gpu-1" {
			t.Errorf("%s is told after the end", name)
		}
		break
	}
}
