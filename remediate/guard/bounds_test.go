package guard

import (
	"strings"
	"testing"
	"time"
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
