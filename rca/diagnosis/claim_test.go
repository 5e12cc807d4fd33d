package diagnosis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A fact's claims are about its object where they name no other, and long texts are claimed
// as far as they are quoted, on one line.
func TestFact(t *testing.T) {
	got := Fact("Node/a", "label x=1", That(Labels, "x", Is, "1"), That("", "", Absent, "").Of("Pod/ml/p"), Says("two\n lines "+strings.Repeat("é", 700)))
	want := Evidence{Ref: "Node/a", Fact: "label x=1", Claims: []Claim{
		{"Node/a", "metadata.labels[x]", "=", "1"}, {"Pod/ml/p", "", "absent", ""}, {"Node/a", "words", "contains", "two lines " + strings.Repeat("é", 590)}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !got.Same(Evidence{Ref: "Node/a", Fact: "label x=1"}) || got.Same(Evidence{Ref: "Node/b", Fact: "label x=1"}) || got.Same(Evidence{Ref: "Node/a", Fact: "label x=2"}) {
		t.Error("evidence is the same by its reference and its fact")
	}
}
