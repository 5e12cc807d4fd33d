package decisions

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A machine is told of an approval once it stands, and never of one that was refused.
func TestEventsOfAnApproval(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	d := executor.Deps{Now: func() time.Time { return at }}
	for _, tc := range []struct {
		carry Carrier
		want  string
	}{
		{func(context.Context, func(journal.Progress)) (executor.Outcome, error) {
			return executor.Outcome{}, errors.New("refused: no right")
		}, `{"error":"refused: no right","event":"done","podRunning":false,"seconds":0}` + "\n"},
		{func(_ context.Context, report func(journal.Progress)) (executor.Outcome, error) {
			report(journal.Progress{N: 1, Of: 1, Text: "cordon"})
			report(journal.Progress{N: 1, Of: 1, Text: "cordon", Done: true})
			return executor.Outcome{Pod: "ml/a", Fix: diagnosis.Fix{}}, nil
		}, `{"event":"approved","plan":"24ac"}
{"event":"step","n":1,"of":1,"text":"cordon"}
{"event":"running","pod":"ml/a"}
{"event":"done","podRunning":true,"seconds":0}
`},
	} {
		var out bytes.Buffer
		if err := (Events{&out, at}).Apply(t.Context(), d, "24ac", tc.carry); (err != nil) != strings.Contains(tc.want, "error") || out.String() != tc.want {
			t.Errorf("%v, %s, want %s", err, out.String(), tc.want)
		}
	}
}

// A plan that waits is told with what it waits for, and until when.
func TestJournalOfAPlanThatWaits(t *testing.T) {
	var told []journal.Progress
	j := NewSteps(func(s journal.Progress) { told = append(told, s) })
	rem := &v1alpha1.Remediation{Spec: v1alpha1.RemediationSpec{Expires: metav1.NewTime(time.Date(2026, 11, 21, 4, 15, 0, 0, time.FixedZone("", 3600)))}}
	j.Read(rem)
	rem.Status.Phase, rem.Status.Message = v1alpha1.Queued, "a freeze window is open"
	j.Read(rem)
	j.Read(rem)
	want := []journal.Progress{{N: 1, Of: 1, Text: "the executor takes it up; the plan expires at 2026-11-21T03:15:00Z"}, {N: 1, Of: 1, Text: "queued: a freeze window is open; the plan expires at 2026-11-21T03:15:00Z"}}
	if !slices.Equal(told, want) {
		t.Errorf("%v, want %v", told, want)
	}
}
