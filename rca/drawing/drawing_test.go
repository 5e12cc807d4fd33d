package drawing

import (
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

// A cell per slice; who holds an instance is told as far as there is room, and that
// somebody does wherever there is any.
func TestBar(t *testing.T) {
	slots := []diagnosis.DrawnSlot{{Profile: "2g.10gb", Start: 4, Size: 2, Holder: "ml/web\x1b[31m-7"}, {Profile: "1g.5gb", Start: 0, Size: 1}, {Profile: "1g.5gb", Start: 1, Size: 1, Holder: "?"}}
	for name, tc := range map[string]struct {
		slices, room int
		slots        []diagnosis.DrawnSlot
		ascii        bool
		want         string
	}{
		"wide":            {8, 80, slots, false, "[1g      ][1g·?    ][        ][        ][2g·ml/web[31m-7   ][        ][        ]"},
		"a chat":          {8, 40, slots, false, "[1g ][1g*][   ][   ][2g·web[3][   ][   ]"},
		"plain":           {8, 48, slots, true, "[1g  ][1g:?][    ][    ][2g:web[31m][    ][    ]"},
		"too narrow":      {8, 20, slots, false, "8 slices do not fit…"},
		"no GPU":          {0, 40, nil, false, "0 slices do not fit here"},
		"one over other":  {8, 40, []diagnosis.DrawnSlot{{Profile: "2g", Start: 0, Size: 2}, {Profile: "1g", Start: 1, Size: 1}}, false, "instances overlap: not drawn"},
		"beyond the last": {7, 40, []diagnosis.DrawnSlot{{Profile: "2g", Start: 6, Size: 2}}, false, "instances overlap: not drawn"},
	} {
		if got := Bar(tc.slices, tc.slots, tc.room, tc.ascii); got != tc.want || width(got) > tc.room {
			t.Errorf("%s: %q, want\n%q", name, got, tc.want)
		}
	}
}
