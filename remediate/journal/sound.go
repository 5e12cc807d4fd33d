package journal

import (
	"fmt"
	"slices"
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// What a journal may say that was written by clocks that differ, and by an executor
// with other deadlines.
const (
	clockSkew    = time.Minute
	longDeadline = 24 * time.Hour
)

// sound says which field of the status this program cannot have written, or not this
// version of it; nil when there is none. To go on from what somebody has
// changed would be a guess.
func (m *Machine) sound() error {
	st := m.status()
	now := m.Now()
	switch {
	case st.Began == nil:
		return fmt.Errorf("status.began: the plan is %s and never began", st.Phase)
	case st.Began.Sub(now) > clockSkew:
		return fmt.Errorf("status.began: %s is to come", formatTime(st.Began.Time))
	case st.Ended != nil:
		return fmt.Errorf("status.ended: the plan is %s and has ended", st.Phase)
	case st.Evicted < 0 || st.Evicted > len(m.program.Pods()):
		return fmt.Errorf("status.evicted: %d, the plan evicts %d", st.Evicted, len(m.program.Pods()))
	}
	if p, ok := m.unnamed(); ok {
		return fmt.Errorf("status.restarted: pod %s, which the plan does not name", p.Name)
	}
	there, err := m.soundSteps(now)
	if err != nil {
		return err
	}
	want := ""
	if there > 0 {
		want = progress(there, len(m.steps))
	}
	if st.Progress != want {
		return fmt.Errorf("status.progress: %q, the journal is at %q", st.Progress, want)
	}
	if err := m.soundEnd(there); err != nil {
		return err
	}
	return m.soundProved()
}

// unnamed is a pod of those that were restarted that no action of the plan stops.
func (m *Machine) unnamed() (v1alpha1.Pod, bool) {
	stops := map[string]bool{}
	for _, a := range m.rem.Spec.Actions {
		for _, s := range a.Stops {
			stops[s.UID] = true
		}
	}
	i := slices.IndexFunc(m.status().Restarted, func(p v1alpha1.Pod) bool { return !stops[string(p.UID)] })
	if i < 0 {
		return v1alpha1.Pod{}, false
	}
	return m.status().Restarted[i], true
}

func progress(n, of int) string { return fmt.Sprintf("%d/%d", n, of) }

// soundSteps reads the journal line by line: the steps there in their order, then those
// of the way back; only the last may be under way. It says how many there are of the
// first.
func (m *Machine) soundSteps(now time.Time) (there int, err error) {
	st := m.status()
	back := m.program.EveryWayBack()
	seen := map[v1alpha1.StepID]bool{}
	for i, e := range st.Journal {
		wrong := func(field, format string, args ...any) (int, error) {
			return there, fmt.Errorf("status.journal[%d].%s: "+format, append([]any{i, field}, args...)...)
		}
		ahead := slices.IndexFunc(m.steps, func(s Step) bool { return s.ID == e.Step })
		behind := slices.IndexFunc(back, func(s Step) bool { return s.ID == e.Step })
		switch {
		case ahead < 0 && behind < 0:
			return wrong("step", "%q is not a step of this plan, as this version carries it out", e.Step)
		case seen[e.Step]:
			return wrong("step", "%q comes twice", e.Step)
		case ahead >= 0 && (ahead != there || i != there):
			return wrong("step", "%q is step %d of the plan, and is not its turn", e.Step, ahead+1)
		case behind >= 0 && st.Phase != v1alpha1.Undoing:
			return wrong("step", "%q is of the way back, and the plan is %s", e.Step, st.Phase)
		case e.Ended == nil && i < len(st.Journal)-1:
			return wrong("ended", "%q has not ended, and another was begun", e.Step)
		case e.Ended == nil && e.Error != "":
			return wrong("error", "%q has not ended, and has failed", e.Step)
		}
		if field, says := soundTimes(e, now); field != "" {
			return wrong(field, "%s", says)
		}
		if seen[e.Step] = true; ahead >= 0 {
			there++
		}
	}
	return there, nil
}

func soundTimes(e v1alpha1.Entry, now time.Time) (field, says string) {
	began, deadline := e.Began.Time, e.Deadline.Time
	switch {
	case began.Sub(now) > clockSkew:
		return "began", formatTime(began) + " is to come"
	case e.Ended != nil && e.Ended.Time.Before(began):
		return "ended", formatTime(e.Ended.Time) + " is before it began, " + formatTime(began)
	case deadline.Before(began):
		return "deadline", formatTime(deadline) + " is before it began, " + formatTime(began)
	case deadline.Sub(began) > longDeadline:
		return "deadline", formatTime(deadline) + " is more than a day after it began, " + formatTime(began)
	case e.Grace != nil && (e.Grace.Time.Before(deadline) || e.Grace.Sub(now) > grace+clockSkew):
		return "grace", formatTime(e.Grace.Time) + " is not until when a step is tried past its deadline, " + formatTime(deadline)
	case e.Generation < 0:
		return "generation", fmt.Sprintf("%d is not one of a lease", e.Generation)
	}
	if !known(e.Note) {
		return "note", fmt.Sprintf("%q is not one of a step", e.Note)
	}
	return "", ""
}

// soundEnd holds what the status says of a failure to the journal.
func (m *Machine) soundEnd(there int) error {
	st := m.status()
	failed := slices.IndexFunc(st.Journal[:there], func(e v1alpha1.Entry) bool { return e.Error != "" })
	if st.Phase == v1alpha1.Running {
		switch {
		case failed >= 0:
			return fmt.Errorf("status.journal[%d].error: a step has failed, and the plan is %s", failed, st.Phase)
		case st.Failure != "":
			return fmt.Errorf("status.failure: %q, and the plan is %s", st.Failure, st.Phase)
		case st.EndsAs != "":
			return fmt.Errorf("status.endsAs: %q, and the plan is %s", st.EndsAs, st.Phase)
		case st.Parking != "":
			return fmt.Errorf("status.parking: %q, and the plan is %s", st.Parking, st.Phase)
		}
		return nil
	}
	parks := slices.ContainsFunc(m.program.EveryWayBack(), func(s Step) bool { return s.ID == st.Parking && s.Parks })
	entry := m.entry(st.Parking)
	switch {
	case failed != there-1 || there == 0:
		return fmt.Errorf("status.phase: the plan is %s, and its last step has not failed", st.Phase)
	case st.Failure == "":
		return fmt.Errorf("status.failure: the plan is %s, and it does not say why", st.Phase)
	case !slices.Contains([]v1alpha1.Phase{v1alpha1.Failed, v1alpha1.Stopped, v1alpha1.Stale, v1alpha1.Refused, v1alpha1.Parked}, st.EndsAs):
		return fmt.Errorf("status.endsAs: %q is not how a plan ends that is %s", st.EndsAs, st.Phase)
	case (st.EndsAs == v1alpha1.Parked) != (st.Parking != ""):
		return fmt.Errorf("status.parking: %q, and the plan ends as %s", st.Parking, st.EndsAs)
	case st.Parking != "" && (!parks || entry == nil || entry.Error == ""):
		return fmt.Errorf("status.parking: %q is not a step that a node is parked by, or it has not failed", st.Parking)
	}
	return nil
}

// soundProved wants each pod of the plan to have been read when it was proved, once:
// it is held to that before it is evicted.
func (m *Machine) soundProved() error {
	seen := map[string]bool{}
	for i, p := range m.status().Proved {
		if seen[p.UID] || p.Generation < 0 {
			return fmt.Errorf("status.proved[%d]: %s of generation %d comes twice, or cannot be", i, p.UID, p.Generation)
		}
		seen[p.UID] = true
	}
	for _, t := range m.program.Pods() {
		if !seen[t.UID] {
			return fmt.Errorf("status.proved: nothing is said of pod %s/%s", t.Namespace, t.Name)
		}
	}
	return nil
}
