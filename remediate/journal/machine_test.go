package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// record lists what a machine tells and writes, in order.
type record struct{ lines []string }

func (r *record) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// on has a machine's options tell the record.
func (r *record) on(o Options) Options {
	o.Save = func(_ context.Context, rem *v1alpha1.Remediation) error {
		r.add("save %s %s", rem.Status.Phase, rem.Status.Progress)
		return nil
	}
	o.Observe = func(_ context.Context, _ *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) error {
		if e == nil {
			r.add("the plan is %s", result)
		} else {
			r.add("%s is %s", e.Step, result)
		}
		return nil
	}
	return o
}

// tries is a step's Try that is on record.
func (r *record) tries(id v1alpha1.StepID, missing string, err error) Step {
	return step(id, "text of "+string(id), func(context.Context, *Entry) (string, error) {
		r.add("try %s", id)
		return missing, err
	})
}

func (r *record) wants(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Error(diff)
	}
}

// What came of a plan otherwise than was said is in its message: of one that has done what it
// was to do, and of one that was taken back.
func TestEndSaysWhatElseCameOfIt(t *testing.T) {
	for _, tc := range []struct {
		after string
		fails error
		phase v1alpha1.Phase
		want  string
	}{
		{"", nil, v1alpha1.Succeeded, "all is done"},
		{"1 pod that was not named stopped: ml/x", nil, v1alpha1.Succeeded, "all is done, but 1 pod that was not named stopped: ml/x"},
		{"1 pod that was not named stopped: ml/x", errors.New("no"), v1alpha1.Failed, "step 1/1, text of run: no; 1 pod that was not named stopped: ml/x"},
	} {
		var r record
		rem := begun()
		m := machine(t, (&clock{noon}).options(), rem, &script{there: []Step{r.tries("run", "", tc.fails)}, after: tc.after})
		err := m.ToTheEnd(t.Context())
		if rem.Status.Phase != tc.phase || rem.Status.Message != tc.want || (err == nil) != (tc.fails == nil) || err != nil && err.Error() != tc.want {
			t.Errorf("%s: %q (%v), want %q", rem.Status.Phase, rem.Status.Message, err, tc.want)
		}
	}
}

// Every step is on record and in the journal before it acts, with its deadline and who
// leads; its end is on record before the next, and the plan's end last.
func TestEveryStepIsJournaledBeforeItActs(t *testing.T) {
	var r record
	c := &clock{noon}
	o := r.on(c.options())
	o.Leads = func(context.Context) (string, int64, error) { return "pod-1", 7, nil }
	rem := begun()
	first := r.tries("0/cordon", "", nil)
	second := step("run", "wait", func(context.Context, *Entry) (string, error) {
		r.add("try run")
		c.now = noon.Add(10 * time.Second)
		return "", nil
	})
	second.Within = time.Hour
	m := machine(t, o, rem, &script{there: []Step{first, second}})
	if wait, err := m.Advance(t.Context()); wait != 0 || err != nil {
		t.Fatal(wait, err)
	}
	r.wants(t, "0/cordon is begun", "save Running 1/2", "try 0/cordon", "0/cordon is done", "run is begun", "save Running 2/2", "try run", "run is done",
		"the plan is done", "save Succeeded 2/2")
	zero, ten := at(0), at(10*time.Second)
	want := v1alpha1.RemediationStatus{Phase: v1alpha1.Succeeded, Message: "all is done", Progress: "2/2", Began: &zero, Ended: &ten, Journal: []v1alpha1.Entry{
		{Step: "0/cordon", Text: "text of 0/cordon", Began: zero, Ended: &zero, Deadline: at(time.Minute), Leader: "pod-1", Generation: 7},
		{Step: "run", Text: "wait", Began: zero, Ended: &ten, Deadline: at(time.Hour), Leader: "pod-1", Generation: 7},
	}}
	if diff := cmp.Diff(want, rem.Status); diff != "" {
		t.Error(diff)
	}
}

// What cannot be put on record, or is no longer ours to do, is not begun.
func TestNothingIsBegunOffTheRecord(t *testing.T) {
	no := errors.New("no")
	for name, tc := range map[string]struct {
		spoil func(*Options)
		lines int // of the journal
		want  []string
	}{
		"another leads": {func(o *Options) {
			o.Leads = func(context.Context) (string, int64, error) { return "", 0, no }
		}, 0, nil},
		"the trail is full": {func(o *Options) {
			o.Observe = func(context.Context, *v1alpha1.Remediation, *v1alpha1.Entry, audit.Result) error { return no }
		}, 0, nil},
		"the journal cannot be written": {func(o *Options) {
			o.Save = func(context.Context, *v1alpha1.Remediation) error { return no }
		}, 1, []string{"0/cordon is begun"}},
	} {
		t.Run(name, func(t *testing.T) {
			var r record
			o := r.on((&clock{noon}).options())
			tc.spoil(&o)
			rem := begun()
			m := machine(t, o, rem, &script{there: []Step{r.tries("0/cordon", "", nil)}})
			if wait, err := m.Advance(t.Context()); wait != 0 || !errors.Is(err, no) || len(rem.Status.Journal) != tc.lines || m.Phase() != v1alpha1.Running {
				t.Errorf("%s, %v, %+v", wait, err, rem.Status)
			}
			r.wants(t, tc.want...)
		})
	}
}

// A step that misses something is asked again, the less often the longer it has taken, and
// fails once its deadline has come.
func TestAStepIsAskedUntilItsDeadline(t *testing.T) {
	for _, tc := range []struct {
		waited, again time.Duration
	}{
		{0, time.Second}, {3 * time.Second, time.Second}, {4 * time.Second, time.Second}, {8 * time.Second, 2 * time.Second}, {39 * time.Second, 9750 * time.Millisecond},
		{40 * time.Second, 10 * time.Second}, {59 * time.Second, 10 * time.Second}, {time.Minute, 0},
	} {
		var r record
		c := &clock{noon}
		rem := begun()
		m := machine(t, r.on(c.options()), rem, &script{there: []Step{r.tries("0/empty", "a pod is there", nil)}, back: []Step{r.tries("undo/0/release", "", nil)}})
		if _, err := m.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.lines, c.now = nil, noon.Add(tc.waited)
		wait, err := m.Advance(t.Context())
		if wait != tc.again || err != nil {
			t.Errorf("after %s: again in %s, %v; want %s", tc.waited, wait, err, tc.again)
		}
		if tc.again > 0 {
			r.wants(t, "try 0/empty")
			continue
		}
		r.wants(t, "try 0/empty", "0/empty is failed", "save Undoing 1/1", "undo/0/release is begun", "save Undoing 1/1", "try undo/0/release", "undo/0/release is done",
			"the plan is undone", "save Failed 1/1")
		if s := rem.Status; s.Message != "step 1/1, text of 0/empty: not within 1m0s: a pod is there" || s.Message != s.Failure || s.EndsAs != v1alpha1.Failed {
			t.Errorf("%+v", s)
		}
	}
}

// What has to be kept all the time is kept by a try that takes a look's time: the next follows at once, at the end as at
// the beginning.
func TestATryThatHasWaitedIsFollowedAtOnce(t *testing.T) {
	for _, waited := range []time.Duration{0, 8 * time.Second, 59 * time.Second} {
		var r record
		c := &clock{noon}
		rem := begun()
		s := r.tries("0/empty", "a pod is there", nil)
		try := s.Try
		s.Try = func(ctx context.Context, e *Entry) (string, error) {
			e.Waited = true
			return try(ctx, e)
		}
		m := machine(t, r.on(c.options()), rem, &script{there: []Step{s}})
		if _, err := m.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.now = noon.Add(waited)
		if wait, err := m.Advance(t.Context()); wait != time.Millisecond || err != nil {
			t.Errorf("after %s: again in %s, %v", waited, wait, err)
		}
	}
}

// An API server that cannot answer is no failure of the step before its deadline, and on the
// way back none at all: it is waited for, and left alone for as long as it asks.
func TestAnAPIServerThatIsAwayIsWaitedFor(t *testing.T) {
	away := apierrors.NewInternalError(errors.New("etcd is away"))
	for _, tc := range []struct {
		name  string
		phase v1alpha1.Phase
		after time.Duration
		fails string
	}{
		{"there", v1alpha1.Running, 59 * time.Second, ""},
		{"there, past the deadline", v1alpha1.Running, time.Minute, "step 1/1, text of 0/cordon: not within 1m0s: Internal error occurred: etcd is away"},
		{"on the way back", v1alpha1.Undoing, time.Hour, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r record
			c := &clock{noon}
			rem := begun()
			p := &script{there: []Step{r.tries("0/cordon", "", away)}}
			if tc.phase == v1alpha1.Undoing {
				p = &script{there: []Step{r.tries("0/cordon", "", errors.New("no"))}, back: []Step{r.tries("undo/0/release", "", away)}}
			}
			m := machine(t, c.options(), rem, p)
			if _, err := m.Advance(t.Context()); err != nil || m.Phase() != tc.phase {
				t.Fatal(m.Phase(), err)
			}
			c.now = noon.Add(tc.after)
			wait, err := m.Advance(t.Context())
			if err != nil || (wait == 0) != (tc.fails != "") || tc.fails != rem.Status.Message {
				t.Errorf("again in %s, %v: %s", wait, err, rem.Status.Message)
			}
		})
	}
	t.Run("as long as it asks", func(t *testing.T) {
		var r record
		c := &clock{noon}
		m := machine(t, c.options(), begun(), &script{there: []Step{r.tries("0/cordon", "", apierrors.NewTooManyRequests("later", 7))}})
		for _, look := range []struct {
			at, again time.Duration
			tries     int
		}{{0, 7 * time.Second, 1}, {0, 7 * time.Second, 1}, {time.Second, 6 * time.Second, 1}, {6999 * time.Millisecond, time.Millisecond, 1}, {7 * time.Second, 7 * time.Second, 2}, {6 * time.Second, 7 * time.Second, 3}} {
			c.now = noon.Add(look.at) // at the end it is set back: nobody waits for it to catch up
			wait, err := m.Advance(t.Context())
			if wait != look.again || err != nil || len(r.lines) != look.tries {
				t.Errorf("at %s: again in %s, %v, after %d tries; want %s, %d", look.at, wait, err, len(r.lines), look.again, look.tries)
			}
		}
	})
}

// A plan that fails turns back, and says how it ended: by what went wrong, with what stays.
func TestAPlanEndsAsWhatWentWrong(t *testing.T) {
	for _, tc := range []struct {
		err  error
		left string
		ends v1alpha1.Phase
		says string
	}{
		{errors.New("no"), "", v1alpha1.Failed, "step 2/2, text of 0/config: no"},
		{errors.New("no"), "patch deployment/web", v1alpha1.Failed, "step 2/2, text of 0/config: no (done before, and left so: patch deployment/web)"},
		{fmt.Errorf("%w: it is another", plan.ErrStale), "", v1alpha1.Stale, "step 2/2, text of 0/config: plan is stale: it is another"},
		{fmt.Errorf("%w: no right", plan.ErrRefused), "", v1alpha1.Refused, "step 2/2, text of 0/config: refused: no right"},
		{fmt.Errorf("%w: bob said no", plan.ErrHalted), "", v1alpha1.Stopped, "step 2/2, text of 0/config: halted: bob said no"},
	} {
		var r record
		rem := begun()
		m := machine(t, (&clock{noon}).options(), rem, &script{left: tc.left,
			there: []Step{r.tries("0/cordon", "", nil), r.tries("0/config", "", tc.err)}, back: []Step{r.tries("undo/nomination", "", nil), r.tries("undo/0/release", "", nil)}})
		if wait, err := m.Advance(t.Context()); wait != 0 || err != nil {
			t.Fatal(wait, err)
		}
		r.wants(t, "try 0/cordon", "try 0/config", "try undo/nomination", "try undo/0/release")
		if s := rem.Status; s.Phase != tc.ends || s.Message != tc.says || s.Failure != tc.says || s.EndsAs != tc.ends || s.Parking != "" || s.Progress != "2/2" || s.Ended == nil {
			t.Errorf("%+v, want %s", s, tc.says)
		}
		if e := rem.Status.Journal[1]; e.Error != tc.err.Error() || e.Ended == nil {
			t.Errorf("%+v", e)
		}
	}
}

// Somebody who says stop stops the way there, and never the way back.
func TestStopIsNoReasonToStayHalfway(t *testing.T) {
	var r record
	rem := begun()
	o := (&clock{noon}).options()
	o.Hold = func(context.Context) error {
		r.add("hold?")
		return plan.ErrHalted
	}
	m := machine(t, o, rem, &script{there: []Step{r.tries("0/cordon", "", nil)}, back: []Step{r.tries("undo/0/release", "", nil)}})
	if _, err := m.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wants(t, "hold?", "try undo/0/release")
	if rem.Status.Phase != v1alpha1.Stopped {
		t.Errorf("%+v", rem.Status)
	}
}

// A way back that fails at a step that parks parks the node, once, and what else fails is
// said; without such a step the plan has failed. The steps that remain are tried all the same.
func TestAWayBackThatFails(t *testing.T) {
	no := func(text string) error { return errors.New(text) }
	parks := func(s Step) Step {
		s.Parks = true
		return s
	}
	for _, tc := range []struct {
		name string
		back func(*record) []Step
		ends v1alpha1.Phase
		says string
		at   v1alpha1.StepID
	}{
		{"no step parks", func(r *record) []Step {
			return []Step{r.tries("undo/1/a", "", no("a")), r.tries("undo/1/b", "", nil), r.tries("undo/1/c", "", no("c"))}
		}, v1alpha1.Failed, "step 1/1, text of 0/x: halted; on the way back, text of undo/1/a: a; on the way back, text of undo/1/c: c", ""},
		{"one parks", func(r *record) []Step {
			return []Step{parks(r.tries("undo/1/a", "", no("a"))), parks(r.tries("undo/1/b", "", no("b"))), r.tries("undo/1/c", "", no("c"))}
		}, v1alpha1.Parked, "step 1/1, text of 0/x: halted; on the way back, text of undo/1/a: a; the node is parked, cordoned on purpose; on the way back, text of undo/1/b: b; on the way back, text of undo/1/c: c", "undo/1/a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r record
			rem := begun()
			m := machine(t, (&clock{noon}).options(), rem, &script{there: []Step{r.tries("0/x", "", plan.ErrHalted)}, back: tc.back(&r)})
			if _, err := m.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.wants(t, "try 0/x", "try undo/1/a", "try undo/1/b", "try undo/1/c")
			if s := rem.Status; s.Phase != tc.ends || s.Message != tc.says || s.Parking != tc.at {
				t.Errorf("%s at %q: %s", s.Phase, s.Parking, s.Message)
			}
		})
	}
}

// A dry run takes nothing back and ends as what went wrong.
func TestADryRunTakesNothingBack(t *testing.T) {
	var r record
	rem := begun()
	o := r.on((&clock{noon}).options())
	o.DryRun = true
	keeps := step("0/x", "x", func(ctx context.Context, e *Entry) (string, error) {
		return "", errors.Join(e.Keep(ctx, Written), plan.ErrRefused)
	})
	m := machine(t, o, rem, &script{there: []Step{keeps}, back: []Step{r.tries("undo/0/x", "", nil)}})
	if _, err := m.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wants(t, "0/x is begun", "save Running 1/1", "0/x is failed")
	if s := rem.Status; s.Phase != v1alpha1.Refused || s.Message != "step 1/1, x: refused" || s.Journal[0].Note != Written {
		t.Errorf("%+v", s)
	}
}

// resumed is a plan whose one step a process began at noon that has ended since.
func resumed(grace *metav1.MicroTime) *v1alpha1.Remediation {
	rem := begun()
	rem.Status.Progress = "1/1"
	rem.Status.Journal = []v1alpha1.Entry{{Step: "0/x", Began: at(0), Deadline: at(time.Minute), Grace: grace}}
	return rem
}

// A step that another process began is looked at again, and told so. Past its deadline it
// has a grace, which is on record before the try; past that it fails untried.
func TestAStepOfAnotherProcess(t *testing.T) {
	two := at(2 * time.Minute)
	for _, tc := range []struct {
		name  string
		after time.Duration
		grace *metav1.MicroTime
		want  []string
		until time.Duration // of the grace, afterwards
	}{
		{"in time", 59 * time.Second, nil, []string{"try again"}, 0},
		{"at its deadline", time.Minute, nil, []string{"save Running 1/1", "try again"}, 2 * time.Minute},
		{"long past it", time.Hour, nil, []string{"save Running 1/1", "try again"}, time.Hour + time.Minute},
		{"within its grace", 119 * time.Second, &two, []string{"try again"}, 2 * time.Minute},
		{"at the end of its grace", 2 * time.Minute, &two, []string{"0/x is failed", "save Undoing 1/1"}, 2 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r record
			c := &clock{noon.Add(tc.after)}
			rem := resumed(tc.grace)
			m := machine(t, r.on(c.options()), rem, &script{there: []Step{step("0/x", "x", func(_ context.Context, e *Entry) (string, error) {
				if r.add("try again"); !e.Again {
					t.Error("it is not told that it was begun before")
				}
				return "", nil
			})}})
			if _, err := m.turn(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := r.lines[:min(len(r.lines), len(tc.want))]; !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", r.lines, tc.want)
			}
			switch e := rem.Status.Journal[0]; {
			case (e.Grace == nil) != (tc.until == 0), e.Grace != nil && !e.Grace.Time.Equal(noon.Add(tc.until)):
				t.Errorf("grace until %v, want %s after it began", e.Grace, tc.until)
			case (e.Error != "") != (len(tc.want) == 2 && tc.want[0] == "0/x is failed"):
				t.Errorf("%+v", e)
			case e.Error != "" && e.Error != "not within 1m0s: the executor has ended at every try":
				t.Error(e.Error)
			}
		})
	}
	t.Run("only the first look is judged so", func(t *testing.T) {
		c := &clock{noon.Add(59 * time.Second)}
		rem := resumed(nil)
		m := machine(t, c.options(), rem, &script{there: []Step{step("0/x", "x", func(context.Context, *Entry) (string, error) { return "not yet", nil })}})
		if wait, err := m.Advance(t.Context()); wait == 0 || err != nil {
			t.Fatal(wait, err)
		}
		c.now = noon.Add(time.Minute)
		if _, err := m.Advance(t.Context()); err != nil || rem.Status.Journal[0].Grace != nil || m.Phase() != v1alpha1.Failed {
			t.Errorf("%+v, %v", rem.Status, err)
		}
	})
}

// A clock that was set back makes nobody wait for it, and no step end before it began.
func TestAClockThatWasSetBack(t *testing.T) {
	c := &clock{noon.Add(-30 * time.Second)}
	rem := resumed(nil)
	m := machine(t, c.options(), rem, &script{there: []Step{step("0/x", "x", func(context.Context, *Entry) (string, error) {
		c.now = noon.Add(-time.Hour)
		return "", nil
	})}})
	if _, err := m.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := at(-30 * time.Second)
	if diff := cmp.Diff(v1alpha1.Entry{Step: "0/x", Began: began, Deadline: at(30 * time.Second), Ended: &began}, rem.Status.Journal[0]); diff != "" {
		t.Error(diff)
	}
}

// A caller that goes away ends the look, and the step stays as it is.
func TestACallerThatGoesAwayEndsTheLook(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rem := begun()
	m := machine(t, (&clock{noon}).options(), rem, &script{there: []Step{step("0/x", "x", func(context.Context, *Entry) (string, error) {
		cancel()
		return "", errors.New("the connection was closed")
	})}})
	wait, err := m.Advance(ctx)
	if wait != 0 || !errors.Is(err, context.Canceled) || m.Phase() != v1alpha1.Running || rem.Status.Journal[0].Ended != nil || rem.Status.Journal[0].Error != "" {
		t.Errorf("%s, %v, %+v", wait, err, rem.Status)
	}
}

// A machine knows by the version of the journal whether anybody has written it since.
func TestWhoWroteTheJournal(t *testing.T) {
	rem := begun()
	rem.ResourceVersion = "7"
	m := machine(t, (&clock{noon}).options(), rem, &script{})
	if !m.Wrote(&v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}) || m.Wrote(&v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}}) {
		t.Error("7 is the one that it wrote")
	}
}
