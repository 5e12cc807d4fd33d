package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Everything is shown, whatever names and texts hold.
func TestShowGolden(t *testing.T) {
	d := Detail{Diagnosis: hostile(), Holders: []Pod{stopped(1, func(p *Pod) { p.How = "" })}, Stops: map[int][]Pod{1: {stopped(2, nil)}},
		Refuted: []diagnosis.Fix{{Title: "evict ml/\x1b[31mx", Proof: diagnosis.Proof{Verdict: diagnosis.Refuted, Why: "it would fit, but not all 2 members of its gang do"}}}}
	d.Fixes[0].Plan, d.Fixes[0].Steps, d.Fixes[0].Commands = planHash, []string{"cordon a"}, []string{"kubectl cordon \x1b[31ma"}
	o := Options{style: style{ASCII: true}, Now: now, Again: Again{Flags: "--context prod", Shown: true}}
	var b bytes.Buffer
	if err := Show(&b, d, o); err != nil {
		t.Fatal(err)
	}
	golden(t, "show.ascii.txt", b.Bytes())
	for _, r := range b.String() {
		if r != '\n' && (r < 0x20 || r > 0x7e) {
			t.Errorf("character %U", r)
		}
	}
	if strings.Contains(b.String(), "~\n") {
		t.Error("something is cut")
	}
	if err := Show(broken{}, d, o); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Error(err)
	}
}
