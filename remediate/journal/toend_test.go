package journal

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A caller that goes away while the API server is away is not held for ever, and is told
// what may be left behind.
func TestWayBackIsNotTriedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rem := begun()
		rem.Status.Began = new(metav1.NewMicroTime(time.Now()))
		m := machine(t, Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Patience: 15 * time.Minute}, rem, &script{
			there: []Step{step("0/cordon", "cordon", func(context.Context, *Entry) (string, error) {
				cancel()
				return "", ctx.Err()
			})},
			back: []Step{step("undo/0/release", "uncordon", func(context.Context, *Entry) (string, error) {
				return "", &url.Error{Op: "Get", URL: "https://cluster.example", Err: errors.New("connection refused")}
			})}})
		began := time.Now()
		err := m.ToTheEnd(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "what was begun is not all taken back: a node that has the annotation unpend.dev/operation is left cordoned") {
			t.Error(err)
		}
		if took := time.Since(began); took != 15*time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

// Who presses Ctrl-C is told of the way back as it is gone, and at its end where that
// was and what is left: nothing. A dry run has begun nothing.
func TestInterrupted(t *testing.T) {
	cordon, wait, undo := Progress{1, 2, "cordon", false, time.Minute}, Progress{2, 2, "wait", false, time.Minute}, Progress{3, 3, "undo: uncordon", false, time.Minute}
	ended := func(p Progress) Progress {
		p.Done = true
		return p
	}
	for _, tc := range []struct {
		name  string
		dry   bool
		fails error
		want  string
		told  []Progress
	}{
		{"by Ctrl-C", false, nil, "interrupted in step 2/2, wait; what was begun has been taken back", []Progress{cordon, ended(cordon), wait, undo, ended(undo)}},
		{"by a failure", false, errors.New("no"), "step 2/2, wait: no; what was begun has been taken back", []Progress{cordon, ended(cordon), wait, undo, ended(undo)}},
		{"in a dry run", true, errors.New("no"), "step 2/2, wait: no", []Progress{cordon, ended(cordon), wait}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var told []Progress
			o := (&clock{noon}).options()
			o.DryRun, o.Patience, o.Report = tc.dry, time.Minute, func(p Progress) { told = append(told, p) }
			m := machine(t, o, begun(), &script{
				there: []Step{step("0/cordon", "cordon", done), step("0/wait", "wait", func(context.Context, *Entry) (string, error) {
					if tc.fails == nil {
						cancel()
					}
					return "", cmp.Or(tc.fails, ctx.Err())
				})},
				back: []Step{step("undo/0/release", "uncordon", done)}})
			err := m.ToTheEnd(ctx)
			if err == nil || err.Error() != tc.want || errors.Is(err, context.Canceled) != (tc.fails == nil) || !slices.Equal(told, tc.told) {
				t.Errorf("%v, want %s; told of %v", err, tc.want, told)
			}
		})
	}
}

// Where the journal cannot be written, what was begun is taken back, and that is what the
// caller is told: nobody has interrupted anything.
func TestAJournalThatCannotBeWrittenTurnsBack(t *testing.T) {
	full := errors.New("etcd is full")
	o := (&clock{noon}).options()
	saves := 0
	o.Patience, o.Save = time.Minute, func(context.Context, *v1alpha1.Remediation) error {
		if saves++; saves == 2 {
			return full
		}
		return nil
	}
	rem := begun()
	m := machine(t, o, rem, &script{there: []Step{step("0/cordon", "cordon", done), step("0/wait", "wait", done)}, back: []Step{step("undo/0/release", "uncordon", done)}})
	err := m.ToTheEnd(t.Context())
	if !errors.Is(err, full) || !strings.HasPrefix(err.Error(), "etcd is full") || rem.Status.Phase != v1alpha1.Failed || rem.Status.Message != "etcd is full" {
		t.Errorf("%v; %s %s", err, rem.Status.Phase, rem.Status.Message)
	}
	if last := rem.Status.Journal[len(rem.Status.Journal)-1]; last.Step != "undo/0/release" || last.Ended == nil {
		t.Errorf("%+v", last)
	}
}
