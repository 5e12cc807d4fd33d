package journal

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// plot is of a plan that locks, cordons, evicts two pods and sets a label.
func plot() *script {
	steps := func(ids ...v1alpha1.StepID) []Step {
		var out []Step
		for _, id := range ids {
			out = append(out, step(id, string(id), done))
		}
		return out
	}
	p := &script{there: steps("0/lock", "0/cordon", "0/evict/ml/a", "0/evict/ml/b", "0/config", "run"), back: steps("undo/nomination", "undo/0/config", "undo/0/release", "undo/0/unlock"),
		pods: []diagnosis.Target{{Kind: "Pod", Namespace: "ml", Name: "a", UID: "a"}, {Kind: "Pod", Namespace: "ml", Name: "b", UID: "b"}}}
	p.back[1].Parks, p.back[2].Parks = true, true
	return p
}

// standing is the journal of that plan at a minute past noon: a step began every ten
// seconds, the fourth eviction is under way.
func standing() *v1alpha1.Remediation {
	rem := begun()
	rem.Status.Progress, rem.Status.Evicted = "4/6", 1
	rem.Status.Proved = []v1alpha1.Proved{{UID: "b", Generation: 1}, {UID: "job", Generation: 3}, {UID: "a"}}
	for i, id := range []v1alpha1.StepID{"0/lock", "0/cordon", "0/evict/ml/a", "0/evict/ml/b"} {
		began := time.Duration(i) * 10 * time.Second
		e := v1alpha1.Entry{Step: id, Began: at(began), Deadline: at(began + time.Minute), Ended: new(at(began + time.Second))}
		rem.Status.Journal = append(rem.Status.Journal, e)
	}
	rem.Status.Journal[3].Ended = nil
	return rem
}

// back is that plan on its way back: the last step there has failed.
func back(st *v1alpha1.RemediationStatus) {
	st.Phase, st.Failure, st.EndsAs = v1alpha1.Undoing, "no", v1alpha1.Failed
	st.Journal[3].Ended, st.Journal[3].Error = new(at(31*time.Second)), "no"
}

// parked is that plan once its node is to be parked.
func parked(st *v1alpha1.RemediationStatus) {
	back(st)
	st.EndsAs, st.Parking = v1alpha1.Parked, "undo/0/config"
	st.Journal = append(st.Journal, v1alpha1.Entry{Step: "undo/0/config", Began: at(40 * time.Second), Deadline: at(time.Minute), Ended: new(at(50 * time.Second)), Error: "it will not"})
}

// A journal is gone on with only where this program can have written it: the error names
// the field that it cannot have.
func TestOnlyAJournalOfOursIsGoneOnWith(t *testing.T) {
	now := time.Minute
	type status = v1alpha1.RemediationStatus
	entry := func(i int, spoil func(*v1alpha1.Entry)) func(*status) {
		return func(st *status) { spoil(&st.Journal[i]) }
	}
	after := func(base, spoil func(*status)) func(*status) {
		return func(st *status) {
			base(st)
			spoil(st)
		}
	}
	for _, tc := range []struct {
		name  string
		spoil func(*status)
		wrong string
	}{
		{"as it was", func(*status) {}, ""},
		{"not begun yet", func(st *status) { st.Journal, st.Progress, st.Evicted = nil, "", 0 }, ""},
		{"a pod restarted that the plan does not name", func(st *status) { st.Restarted = []v1alpha1.Pod{{Name: "web-0", UID: "web-0"}} }, "status.restarted: pod web-0, which the plan does not name"},
		{"on the way back", back, ""},
		{"back by a no", after(back, func(st *status) { st.EndsAs = v1alpha1.Stopped }), ""},
		{"back for what has changed", after(back, func(st *status) { st.EndsAs = v1alpha1.Stale }), ""},
		{"back for a right that is missing", after(back, func(st *status) { st.EndsAs = v1alpha1.Refused }), ""},
		{"on the way back, at its first step", after(back, func(st *status) {
			st.Journal = append(st.Journal, v1alpha1.Entry{Step: "undo/nomination", Began: at(40 * time.Second), Deadline: at(time.Minute)})
		}), ""},
		{"parked", parked, ""},

		{"never begun", func(st *status) { st.Began = nil }, "status.began: the plan is Running and never began"},
		{"begun by a clock that differs", func(st *status) { st.Began = new(at(now + time.Minute)) }, ""},
		{"begun tomorrow", func(st *status) { st.Began = new(at(now + time.Minute + time.Microsecond)) }, "status.began: 2026-11-21T12:02:00.000001Z is to come"},
		{"ended", func(st *status) { st.Ended = st.Began }, "status.ended: the plan is Running and has ended"},
		{"nobody evicted", func(st *status) { st.Evicted = 0 }, ""},
		{"fewer than nobody evicted", func(st *status) { st.Evicted = -1 }, "status.evicted: -1, the plan evicts 2"},
		{"all evicted", func(st *status) { st.Evicted = 2 }, ""},
		{"more evicted", func(st *status) { st.Evicted = 3 }, "status.evicted: 3, the plan evicts 2"},
		{"other progress", func(st *status) { st.Progress = "3/6" }, `status.progress: "3/6", the journal is at "4/6"`},
		{"progress of nothing", func(st *status) { st.Journal, st.Progress = nil, "0/6" }, `status.progress: "0/6", the journal is at ""`},

		{"a step of another version", entry(3, func(e *v1alpha1.Entry) { e.Step = "0/verify-links" }), `status.journal[3].step: "0/verify-links" is not a step of this plan, as this version carries it out`},
		{"a step twice", entry(3, func(e *v1alpha1.Entry) { e.Step = "0/cordon" }), `status.journal[3].step: "0/cordon" comes twice`},
		{"a step ahead of its turn", entry(3, func(e *v1alpha1.Entry) { e.Step = "0/config" }), `status.journal[3].step: "0/config" is step 5 of the plan, and is not its turn`},
		{"a step left out", func(st *status) { st.Journal = append(st.Journal[:1], st.Journal[2:]...) }, `status.journal[1].step: "0/evict/ml/a" is step 3 of the plan, and is not its turn`},
		{"a step back, and it runs", entry(3, func(e *v1alpha1.Entry) { e.Step = "undo/0/release" }), `status.journal[3].step: "undo/0/release" is of the way back, and the plan is Running`},
		{"the first step back, and it runs", entry(3, func(e *v1alpha1.Entry) { e.Step = "undo/nomination" }), `status.journal[3].step: "undo/nomination" is of the way back, and the plan is Running`},
		{"there again, on the way back", after(parked, func(st *status) {
			st.Journal = append(st.Journal, v1alpha1.Entry{Step: "0/config", Began: at(now), Deadline: at(now)})
		}), `status.journal[5].step: "0/config" is step 5 of the plan, and is not its turn`},
		{"there only once the way back has begun", after(back, func(st *status) {
			first := st.Journal[0]
			st.Journal = []v1alpha1.Entry{{Step: "undo/nomination", Began: at(0), Deadline: at(time.Minute), Ended: new(at(time.Second))}, first}
		}), `status.journal[1].step: "0/lock" is step 1 of the plan, and is not its turn`},
		{"two under way", entry(1, func(e *v1alpha1.Entry) { e.Ended = nil }), `status.journal[1].ended: "0/cordon" has not ended, and another was begun`},
		{"failed under way", entry(3, func(e *v1alpha1.Entry) { e.Error = "no" }), `status.journal[3].error: "0/evict/ml/b" has not ended, and has failed`},

		{"a step begun by a clock that differs", entry(3, func(e *v1alpha1.Entry) { e.Began, e.Deadline = at(now+time.Minute), at(now+time.Minute) }), ""},
		{"a step begun tomorrow", entry(3, func(e *v1alpha1.Entry) { e.Began = at(now + time.Minute + time.Microsecond) }), "status.journal[3].began: 2026-11-21T12:02:00.000001Z is to come"},
		{"ended when it began", entry(2, func(e *v1alpha1.Entry) { e.Ended = &e.Began }), ""},
		{"ended before it began", entry(2, func(e *v1alpha1.Entry) { e.Ended = new(at(0)) }), "status.journal[2].ended: 2026-11-21T12:00:00Z is before it began, 2026-11-21T12:00:20Z"},
		{"due when it began", entry(2, func(e *v1alpha1.Entry) { e.Deadline = e.Began }), ""},
		{"due before it began", entry(2, func(e *v1alpha1.Entry) { e.Deadline = at(0) }), "status.journal[2].deadline: 2026-11-21T12:00:00Z is before it began, 2026-11-21T12:00:20Z"},
		{"due within a day", entry(0, func(e *v1alpha1.Entry) { e.Deadline = at(24 * time.Hour) }), ""},
		{"due in more than a day", entry(0, func(e *v1alpha1.Entry) { e.Deadline = at(24*time.Hour + time.Microsecond) }), "status.journal[0].deadline: 2026-11-22T12:00:00.000001Z is more than a day after it began, 2026-11-21T12:00:00Z"},
		{"a grace from its deadline on", entry(3, func(e *v1alpha1.Entry) { e.Grace = &e.Deadline }), ""},
		{"a grace before its deadline", entry(3, func(e *v1alpha1.Entry) { e.Grace = &e.Began }), "status.journal[3].grace: 2026-11-21T12:00:30Z is not until when a step is tried past its deadline, 2026-11-21T12:01:30Z"},
		{"a grace by a clock that differs", entry(3, func(e *v1alpha1.Entry) { e.Grace = new(at(now + 2*time.Minute)) }), ""},
		{"a grace of longer", entry(3, func(e *v1alpha1.Entry) { e.Grace = new(at(now + 2*time.Minute + time.Microsecond)) }), "status.journal[3].grace: 2026-11-21T12:03:00.000001Z is not until when a step is tried past its deadline, 2026-11-21T12:01:30Z"},
		{"the first lease", entry(3, func(e *v1alpha1.Entry) { e.Generation = 0 }), ""},
		{"a lease of no generation", entry(3, func(e *v1alpha1.Entry) { e.Generation = -1 }), "status.journal[3].generation: -1 is not one of a lease"},
		{"a note of a time", entry(3, func(e *v1alpha1.Entry) { e.Note = formatTime(noon) }), ""},
		{"a note of a hash", entry(3, func(e *v1alpha1.Entry) { e.Note = strings.Repeat("0a", 32) }), ""},
		{"a note of a word", entry(3, func(e *v1alpha1.Entry) { e.Note = News }), ""},
		{"a note of another step", entry(3, func(e *v1alpha1.Entry) { e.Note = "skip the rest" }), `status.journal[3].note: "skip the rest" is not one of a step`},

		{"a step failed, and it runs", entry(2, func(e *v1alpha1.Entry) { e.Error = "no" }), "status.journal[2].error: a step has failed, and the plan is Running"},
		{"the first step failed, and it runs", entry(0, func(e *v1alpha1.Entry) { e.Error = "no" }), "status.journal[0].error: a step has failed, and the plan is Running"},
		{"a reason to turn back, and it runs", func(st *status) { st.Failure = "no" }, `status.failure: "no", and the plan is Running`},
		{"how it ends, and it runs", func(st *status) { st.EndsAs = v1alpha1.Failed }, `status.endsAs: "Failed", and the plan is Running`},
		{"parking, and it runs", func(st *status) { st.Parking = "undo/0/config" }, `status.parking: "undo/0/config", and the plan is Running`},
		{"back, and nothing has failed", after(back, func(st *status) { st.Journal[3].Error = "" }), "status.phase: the plan is Undoing, and its last step has not failed"},
		{"back, and another has failed", after(back, func(st *status) { st.Journal[2].Error, st.Journal[3].Error = "no", "" }), "status.phase: the plan is Undoing, and its last step has not failed"},
		{"back from nothing", after(back, func(st *status) { st.Journal, st.Progress, st.Evicted = nil, "", 0 }), "status.phase: the plan is Undoing, and its last step has not failed"},
		{"back without a reason", after(back, func(st *status) { st.Failure = "" }), "status.failure: the plan is Undoing, and it does not say why"},
		{"back, and ends nowhere", after(back, func(st *status) { st.EndsAs = "" }), `status.endsAs: "" is not how a plan ends that is Undoing`},
		{"back, and succeeds", after(back, func(st *status) { st.EndsAs = v1alpha1.Succeeded }), `status.endsAs: "Succeeded" is not how a plan ends that is Undoing`},
		{"parked without a step", after(back, func(st *status) { st.EndsAs = v1alpha1.Parked }), `status.parking: "", and the plan ends as Parked`},
		{"parking, and has failed", after(parked, func(st *status) { st.EndsAs = v1alpha1.Failed }), `status.parking: "undo/0/config", and the plan ends as Failed`},
		{"parked by no step", after(parked, func(st *status) { st.Parking = "nowhere" }), `status.parking: "nowhere" is not a step that a node is parked by, or it has not failed`},
		{"parked by a step that parks nothing", after(parked, func(st *status) { st.Parking, st.Journal[4].Step = "undo/0/unlock", "undo/0/unlock" }), `status.parking: "undo/0/unlock" is not a step that a node is parked by, or it has not failed`},
		{"parked by a step that was not taken", after(parked, func(st *status) { st.Parking = "undo/0/release" }), `status.parking: "undo/0/release" is not a step that a node is parked by, or it has not failed`},
		{"parked by what went well", after(parked, func(st *status) { st.Journal[4].Error = "" }), `status.parking: "undo/0/config" is not a step that a node is parked by, or it has not failed`},

		{"a pod that was not proved", func(st *status) { st.Proved = st.Proved[1:] }, "status.proved: nothing is said of pod ml/b"},
		{"a pod that was proved twice", func(st *status) { st.Proved = append(st.Proved, st.Proved[0]) }, "status.proved[3]: b of generation 1 comes twice, or cannot be"},
		{"a generation that cannot be", func(st *status) { st.Proved[1].Generation = -1 }, "status.proved[1]: job of generation -1 comes twice, or cannot be"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rem := standing()
			tc.spoil(&rem.Status)
			_, err := New((&clock{noon.Add(now)}).options(), rem, plot())
			if says := errorText(err); says != tc.wrong {
				t.Errorf("%q, want %q", says, tc.wrong)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A note holds when a step's write was answered, also for another process, which takes the
// step's own begin where the one before it came to no note.
func TestSince(t *testing.T) {
	c := noon.Add(time.Minute)
	for _, tc := range []struct {
		name  string
		note  string
		again bool
		want  time.Duration
		noted string
	}{
		{"just now", "", false, 0, formatTime(c)},
		{"a while ago", formatTime(noon.Add(50 * time.Second)), false, 10 * time.Second, formatTime(noon.Add(50 * time.Second))},
		{"by a process that is gone", "", true, 40 * time.Second, ""},
		{"noted by one that is gone", formatTime(noon.Add(50 * time.Second)), true, 10 * time.Second, formatTime(noon.Add(50 * time.Second))},
		{"to come, for the clock was set back", formatTime(c.Add(time.Second)), false, 0, formatTime(c)},
	} {
		e := &Entry{Entry: &v1alpha1.Entry{Began: at(20 * time.Second), Note: tc.note}, Again: tc.again}
		if got := e.Since(c); got != tc.want || e.Note != tc.noted {
			t.Errorf("%s: %s, noted %q; want %s, %q", tc.name, got, e.Note, tc.want, tc.noted)
		}
	}
}

// A note that must be on record is in the journal before the step goes on, once; where it
// cannot be written it is not kept.
func TestANoteIsOnRecordBeforeTheStepGoesOn(t *testing.T) {
	no := errors.New("no")
	for name, tc := range map[string]struct {
		before, keep string
		err          error
		saved        int
		note         string
	}{
		"news":                 {"", Written, nil, 1, Written},
		"as it was":            {Written, Written, nil, 0, Written},
		"that cannot be saved": {News, Written, no, 1, News},
	} {
		saved := 0
		e := &Entry{Entry: &v1alpha1.Entry{Note: tc.before}}
		e.save = func(context.Context) error {
			if saved++; e.Note != tc.keep {
				t.Errorf("%s: saved with %q", name, e.Note)
			}
			return tc.err
		}
		if err := e.Keep(t.Context(), tc.keep); !errors.Is(err, tc.err) || saved != tc.saved || e.Note != tc.note {
			t.Errorf("%s: %v, saved %d times, noted %q", name, err, saved, e.Note)
		}
	}
}
