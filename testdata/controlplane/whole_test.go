package controlplane

import (
	"slices"
	"testing"
)

// Without a wish for the whole the first of every few cases stands for them; with it none is
// left out.
func TestSomeStandForAll(t *testing.T) {
	cases := []int{1, 2, 3, 4, 5, 6, 7}
	t.Setenv("UNPEND_ALL", "")
	if some := Some(cases, 3); !slices.Equal(some, []int{1, 4, 7}) || Of(2, 9) != 2 {
		t.Error(some, Of(2, 9))
	}
	t.Setenv("UNPEND_ALL", "1")
	if all := Some(cases, 3); !slices.Equal(all, cases) || Of(2, 9) != 9 {
		t.Error(all, Of(2, 9))
	}
}
