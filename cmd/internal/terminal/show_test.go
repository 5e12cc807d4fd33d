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

// How many wait is said also where there is no pod to name, or more than are named.
func TestShowSaysHowManyWait(t *testing.T) {
	at := now.UTC().Format("2006-01-02 15:04:05 UTC")
	for want, p := range map[string]diagnosis.WaitingPods{
		"  a, b since " + at:         {Waiting: 2, Names: []string{"a", "b"}, Since: now},
		"  a and 2 more since " + at: {Waiting: 3, Names: []string{"a"}, Since: now},
		"  0 of 2 exist since " + at: {Waiting: 2, Since: now},
	} {
		if got := strings.Join((detailText{}).waitingPods(p), "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
