package terminal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/rca/diagnosis"
)

func TestDrawing(t *testing.T) {
	eight := diagnosis.Drawing{Node: "gpu-03", GPU: 2, Slices: 8, Note: "4 of 8 free, a 3g needs slices 0-3 or 4-7",
		Before: []diagnosis.DrawnSlot{
			{Profile: "2g.35gb", Start: 4, Size: 2, Holder: "batch/c"}, {Profile: "1g.18gb", Start: 0, Size: 1, Holder: "a/b"},
			{Profile: "1g.18gb+me", Start: 1, Size: 1}, {Profile: "1g.18gb", Start: 6, Size: 1, Holder: "?"}},
		After: []diagnosis.DrawnSlot{{Profile: "3g.71gb", Start: 0, Size: 4}, {Profile: "3g.71gb", Start: 4, Size: 4}}}
	four := diagnosis.Drawing{Node: "a30", Slices: 4, Before: []diagnosis.DrawnSlot{{Profile: "2g.12gb", Start: 2, Size: 2, Holder: "team/long-name-of-a-pod-0"}}}
	twelve := diagnosis.Drawing{Node: "rtx", GPU: 1, Slices: 12, Before: []diagnosis.DrawnSlot{{Profile: "1g.24gb", Start: 0, Size: 3, Holder: "a/b"}, {Profile: "4g.96gb", Start: 3, Size: 1, Holder: "x/y"}}}
	for name, c := range map[string]struct {
		d       diagnosis.Drawing
		columns int
		ascii   bool
		want    []string
	}{
		"eight slices": {eight, 80, false, []string{
			"gpu-03/GPU 2  [1g·a/b][1g+me ][      ][      ][2g·batch/c    ][1g·?  ][      ]",
			"              4 of 8 free, a 3g needs slices 0-3 or 4-7",
			"after         [3g                            ][3g                            ]"}},
		"eight slices for chat": {eight, 40, false, []string{
			"gpu-03/GPU 2",
			"[1g*][1g ][   ][   ][2g·c    ][1g*][   ]",
			"4 of 8 free, a 3g needs slices 0-3 or",
			"4-7",
			"after",
			"[3g                ][3g                ]"}},
		"four slices, ASCII": {four, 60, true, []string{"a30/GPU 0  [          ][          ][2g:long-name-of-a-pod-]"}},
		"twelve slices":      {twelve, 80, false, []string{"rtx/GPU 1  [1g·a/b       ][4g*][   ][   ][   ][   ][   ][   ][   ][   ]"}},
		"twelve slices for chat": {twelve, 40, false, []string{"rtx/GPU 1",
			"[1g·a/b ][*][ ][ ][ ][ ][ ][ ][ ][ ]"}},
		"too narrow":   {twelve, 30, false, []string{"rtx/GPU 1", "12 slices do not fit here"}},
		"no slices":    {diagnosis.Drawing{Node: "n"}, 40, false, []string{"n/GPU 0"}},
		"out of range": {diagnosis.Drawing{Node: "n", Slices: 4, Before: []diagnosis.DrawnSlot{{Start: 3, Size: 2}}}, 40, false, []string{"n/GPU 0", "instances overlap: not drawn"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Drawing(c.d, c.columns, c.ascii)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDrawingKeepsItsWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slices := rapid.SampledFrom([]int{4, 8, 12}).Draw(t, "slices")
		d := diagnosis.Drawing{Node: rapid.String().Draw(t, "node"), Slices: slices, Note: rapid.String().Draw(t, "note")}
		for at := 0; at < slices; {
			size := rapid.IntRange(1, slices-at).Draw(t, "size")
			if rapid.Bool().Draw(t, "instance") {
				d.Before = append(d.Before, diagnosis.DrawnSlot{Profile: "3g.20gb", Start: at, Size: size, Holder: rapid.String().Draw(t, "holder")})
			}
			at += size
		}
		columns := rapid.IntRange(10, 120).Draw(t, "columns")
		ascii := rapid.Bool().Draw(t, "ascii")
		for _, l := range Drawing(d, columns, ascii) {
			if w := width(l); w > columns {
				t.Fatalf("%d columns of %d: %q", w, columns, l)
			}
		}
	})
}

func TestAfterNamesTheFixThatMakesIt(t *testing.T) {
	d := allOneG()
	if got := afterLabel(d); got != "after fix 1" {
		t.Error(got)
	}
	d.Fixes[0].Actions, d.Fixes[1].Actions = d.Fixes[2].Actions, d.Fixes[0].Actions
	if got := afterLabel(d); got != "after fix 2" {
		t.Error(got)
	}
	d.Drawing.GPU = 1
	if got := afterLabel(d); got != "after" {
		t.Error(got)
	}
}
