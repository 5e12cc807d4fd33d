package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
		{"by Ctrl-C, after what stays", false, nil, "interrupted in step 2/2, wait (done before, and left so: pod ml/web-0 was evicted); what else was begun has been taken back", []Progress{cordon, ended(cordon), wait, undo, ended(undo)}},
		{"in a dry run", true, errors.New("no"), "step 2/2, wait: no", []Progress{cordon, ended(cordon), wait}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var told []Progress
			o := (&clock{noon}).options()
			o.DryRun, o.Patience, o.Report = tc.dry, time.Minute, func(p Progress) { told = append(told, p) }
			left := ""
			if strings.Contains(tc.want, "left so") {
				left = "pod ml/web-0 was evicted"
			}
			m := machine(t, o, begun(), &script{left: left,
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

// Who presses Ctrl-C on the way back is told what had gone wrong before, and that it was all
// taken back nonetheless: no step of the way there was interrupted.
func TestInterruptedOnTheWayBack(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tries := 0
	o := (&clock{noon}).options()
	o.Patience = time.Minute
	m := machine(t, o, begun(), &script{
		there: []Step{step("0/cordon", "cordon", done), step("0/wait", "wait", func(context.Context, *Entry) (string, error) { return "", errors.New("no") })},
		back: []Step{step("undo/0/release", "uncordon", func(ctx context.Context, _ *Entry) (string, error) {
			tries++
			cancel()
			return "", ctx.Err()
		})}})
	err := m.ToTheEnd(ctx)
	if want := "step 2/2, wait: no\ncontext canceled; what was begun has been taken back"; err == nil || err.Error() != want || !errors.Is(err, context.Canceled) || tries != 2 {
		t.Errorf("%v after %d tries, want %s", err, tries, want)
	}
}

// A step that waits shows that its process is alive: the journal is written all the same.
// Who finds that another has written it since writes nothing more, and takes nothing back.
func TestWaitingShowsThatItIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, rem, tries, saves := time.Now(), begun(), 0, []string{}
		rem.Status.Began = new(metav1.NewMicroTime(began))
		undone := false
		m := machine(t, Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Patience: time.Minute, Poll: 5 * time.Second, Renew: 2 * time.Second,
			Save: func(context.Context, *v1alpha1.Remediation) error {
				saves = append(saves, fmt.Sprintf("%s at %s, renewed %v", rem.Status.Phase, time.Since(began), rem.Status.Renewed != nil))
				if len(saves) == 5 {
					return fmt.Errorf("%w: a conflict", ErrTakenOver)
				}
				return nil
			}}, rem, &script{
			there: []Step{step("0/cordon", "cordon", func(context.Context, *Entry) (string, error) { tries++; return "not yet", nil })},
			back:  []Step{step("undo/0/release", "uncordon", func(context.Context, *Entry) (string, error) { undone = true; return "", nil })}})
		if err := m.ToTheEnd(t.Context()); !errors.Is(err, ErrTakenOver) || undone || tries != 2 {
			t.Errorf("%v, undone %v, %d tries", err, undone, tries)
		}
		want := []string{"Running at 0s, renewed false", "Running at 2s, renewed true", "Running at 4s, renewed true", "Running at 7s, renewed true", "Running at 9s, renewed true"}
		if !slices.Equal(saves, want) {
			t.Errorf("saved %q, want %q", saves, want)
		}
	})
}

// What a terminal has left, wherever it was killed, is a journal that another goes on from,
// backwards.
func TestAbandonedPlanIsTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		killed int // at the step
		steps  string
	}{"in the first step": {1, "[0/cordon undo/0/release]"}, "in the second": {2, "[0/cordon 0/wait undo/0/release]"}, "on the way back": {3, "[0/cordon 0/wait undo/0/release]"}} {
		t.Run(name, func(t *testing.T) {
			rem, n := begun(), 0
			there := func(context.Context, *Entry) (string, error) {
				if n++; n == tc.killed {
					return "", context.Canceled
				}
				if n == 2 {
					return "", errors.New("it fails")
				}
				return "", nil
			}
			s := &script{there: []Step{step("0/cordon", "cordon", there), step("0/wait", "wait", there)}, back: []Step{step("undo/0/release", "uncordon", there)}}
			ctx, cancel := context.WithCancel(t.Context())
			o := (&clock{noon}).options()
			o.Save = func(context.Context, *v1alpha1.Remediation) error { return nil }
			m := machine(t, o, rem, s)
			for n < tc.killed {
				if n == tc.killed-1 {
					cancel()
				}
				m.turn(ctx) //nolint:errcheck // it is killed
			}
			cancel()
			if !Abandon(rem, "its terminal has ended", noon) {
				t.Fatal("it had begun")
			}
			n = 10
			again := machine(t, o, rem, s) // refuses a journal that is not sound
			if err := again.ToTheEnd(t.Context()); err != nil {
				t.Error(err)
			}
			var steps []v1alpha1.StepID
			for _, e := range rem.Status.Journal {
				steps = append(steps, e.Step)
			}
			want := v1alpha1.Stopped
			if tc.killed == 3 {
				want = v1alpha1.Failed // as it was to end
			}
			if fmt.Sprint(steps) != tc.steps || rem.Status.Phase != want || n != 11 {
				t.Errorf("%v, %s: %s; %d tries", steps, rem.Status.Phase, rem.Status.Message, n-10)
			}
		})
	}
	if rem := begun(); Abandon(rem, "its terminal has ended", noon) || rem.Status.Phase != v1alpha1.Running {
		t.Error("nothing was begun")
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
