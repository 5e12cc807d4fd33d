package terminal

import (
	"strings"
	"testing"
)

// Lines keep their spaces, long ones are folded behind the bar, and nothing of a name reaches
// the terminal that cannot be seen.
func TestPreview(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{style: style{Width: 40}}, "  │ a headline\n  │\n  │ [2g            ][      ]\n  │ one two three four five six seven\n  │ eight nine\n"},
		{Options{style: style{Width: 40, ASCII: true}}, "  | a headline\n  |\n  | [2g            ][      ]\n  | one two three four five six seven\n  | eight nine\n"},
	} {
		var got strings.Builder
		if err := Preview(&got, []string{"a head\x1bline", "", "[2g            ][      ]", "one two three four five six seven eight nine"}, tc.o); err != nil || got.String() != tc.want {
			t.Errorf("%v\n%s\nwant\n%s", err, got.String(), tc.want)
		}
	}
}
