package remediate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// step is one thing that is done to the cluster. Its name is stable: the journal is
// read by it after a crash.
type step struct {
	id     string
	text   string
	within time.Duration
	// try looks at the world and does what is left to do, once: it is asked again
	// until nothing is missing. It must do no harm when all was done before, for it
	// is asked again after a crash too.
	try func(ctx context.Context, e *entry) (missing string, err error)
	// parks says that a failure of this way back leaves the node cordoned, with the
	// reason on it.
	parks bool
}

// entry is a step's line of the journal.
type entry struct {
	*v1alpha1.Entry
	// again: the step was begun before by a process that has ended since, which may
	// have made its write or not.
	again bool
}

// machine carries a plan out, a step after the other, on a journal that says where
// it stands. It keeps nothing that is not in the journal or in the cluster.
type machine struct {
	*runner
	program []step
	// back is the way back from where the journal stands.
	back func() []step
	// again are the steps that the journal, when it was read, said were under way.
	again map[string]bool
	// resumed is the one of them that has not been looked at since.
	resumed string
	// failed is what went wrong, with the errors a caller tells apart.
	failed error
	// The API server wants to be left alone for so long from then on; whatever else
	// has us look at the plan meanwhile.
	asked   time.Duration
	askedAt time.Time
}

func (r *runner) machine() (*machine, error) {
	m := &machine{runner: r, again: map[string]bool{}}
	m.program = r.steps()
	m.back = r.wayBack
	if err := m.sound(); err != nil {
		return nil, err
	}
	for _, e := range r.rem.Status.Journal {
		if e.Ended == nil {
			m.again[e.Step], m.resumed = true, e.Step
		}
	}
	return m, nil
}

// advance goes on until there is nothing to do but wait, and says for how long; zero
// when the plan has come to its end. The error is that of the journal or of the
// context: what goes wrong with a step is in the status.
func (m *machine) advance(ctx context.Context) (time.Duration, error) {
	for !m.status().Phase.Ended() {
		wait, err := m.turn(ctx)
		if err != nil || wait > 0 {
			return wait, err
		}
	}
	return 0, nil
}

func (m *machine) status() *v1alpha1.RemediationStatus { return &m.rem.Status }

func (m *machine) undoing() bool { return m.status().Phase == v1alpha1.Undoing }

// turn tries the next step once.
func (m *machine) turn(ctx context.Context) (time.Duration, error) {
	if passed := m.Now().Sub(m.askedAt); passed >= 0 && passed < m.asked {
		return m.asked - passed, nil
	}
	s, ok := m.next()
	if !ok {
		return 0, m.end(ctx)
	}
	e, err := m.begin(ctx, s)
	if err != nil {
		return 0, err
	}
	missing, err := m.overdue(ctx, s, e)
	if err != nil {
		return 0, err
	}
	if missing == "" {
		missing, err = m.try(ctx, s, e)
	}
	m.asked, m.askedAt = delayOf(err), m.Now()
	unanswered := transient(err)
	if unanswered {
		missing, err = err.Error(), nil
	}
	switch now := m.Now(); {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err == nil && missing == "":
		m.endOf(ctx, s, e, nil)
		return 0, nil
	case err != nil:
	case now.Before(e.Deadline.Time) || unanswered && m.undoing():
		// On the way back an API server that does not answer is waited for.
		return max(m.asked, m.pause(now.Sub(e.Began.Time))), nil
	default:
		err = fmt.Errorf("not within %s: %s", s.within, missing)
	}
	m.endOf(ctx, s, e, err)
	where := "step " + m.status().Progress
	if m.undoing() {
		where = "on the way back"
	}
	return 0, m.turnBack(ctx, s, fmt.Errorf("%s, %s: %w", where, s.text, err))
}

// grace is how long a step is tried that was taken over past its deadline.
const grace = contention

// overdue judges the deadline of a step that was begun by an executor which has ended
// since, before the step is tried again: one at which every executor ends would be tried
// for ever. Whoever was only away for long finds what came of it meanwhile, within a grace
// that is on record before the first try.
func (m *machine) overdue(ctx context.Context, s step, e *entry) (missing string, err error) {
	if m.resumed != s.id {
		return "", nil
	}
	m.resumed = ""
	now := m.Now()
	switch {
	case now.Before(e.Deadline.Time) || e.Grace != nil && now.Before(e.Grace.Time):
		return "", nil
	case e.Grace != nil:
		return "the executor has ended at every try", nil
	}
	e.Grace = new(metav1.NewMicroTime(now.Add(grace)))
	return "", m.save(ctx)
}

// try asks the step, unless somebody has said stop: the way back is always gone.
func (m *machine) try(ctx context.Context, s step, e *entry) (string, error) {
	if m.Hold != nil && !m.undoing() {
		if err := m.Hold(ctx); err != nil {
			return "", err
		}
	}
	return s.try(ctx, e)
}

// delayOf is how long an API server that cannot answer now wants to be left alone.
func delayOf(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// pause grows with the time a step has taken: a budget that says no is not asked
// every second for five minutes.
func (m *machine) pause(waited time.Duration) time.Duration {
	return min(max(m.Poll, waited/4), 10*m.Poll)
}

// next is the first step that has not ended.
func (m *machine) next() (step, bool) {
	list := m.program
	if m.undoing() {
		list = m.back()
	}
	for _, s := range list {
		if e := m.entry(s.id); e == nil || e.Ended == nil {
			return s, true
		}
	}
	return step{}, false
}

func (m *machine) entry(id string) *v1alpha1.Entry {
	for i := range m.status().Journal {
		if m.status().Journal[i].Step == id {
			return &m.status().Journal[i]
		}
	}
	return nil
}

// begin journals a step before it acts; one that is under way already is looked at
// again as it is.
func (m *machine) begin(ctx context.Context, s step) (*entry, error) {
	st := m.status()
	now := metav1.NewMicroTime(m.Now())
	if e := m.entry(s.id); e != nil {
		if now.Before(&e.Began) { // the clock was set back: nobody waits for it to catch up
			e.Began, e.Deadline = now, metav1.NewMicroTime(now.Add(s.within))
		}
		return &entry{e, m.again[s.id]}, nil
	}
	line := v1alpha1.Entry{Step: s.id, Text: s.text, Began: now, Deadline: metav1.NewMicroTime(now.Add(s.within))}
	if m.Leads != nil {
		holder, generation, err := m.Leads(ctx)
		if err != nil {
			return nil, err
		}
		line.Leader, line.Generation = holder, generation
	}
	if err := m.observe(ctx, &line, audit.Begun); err != nil {
		return nil, err
	}
	st.Journal = append(st.Journal, line)
	if !m.undoing() {
		st.Progress = progress(slices.IndexFunc(m.program, func(o step) bool { return o.id == s.id })+1, len(m.program))
	}
	if err := m.save(ctx); err != nil {
		return nil, err
	}
	e := m.entry(s.id)
	m.tell(s, false)
	return &entry{e, false}, nil
}

func (m *machine) endOf(ctx context.Context, s step, e *entry, err error) {
	now := metav1.NewMicroTime(m.Now())
	if now.Time.Before(e.Began.Time) {
		now = e.Began // by another's clock
	}
	e.Ended = &now
	result := audit.Done
	if err != nil {
		e.Error, result = err.Error(), audit.Failed
	}
	m.remark(ctx, e.Entry, result)
	if err == nil {
		m.tell(s, true)
	}
}

// tell reports a step; those of the way back are counted on from where it began.
func (m *machine) tell(s step, done bool) {
	if n := slices.IndexFunc(m.program, func(o step) bool { return o.id == s.id }); n >= 0 {
		m.report(Step{n + 1, len(m.program), s.text, done, s.within})
		return
	}
	n := slices.IndexFunc(m.status().Journal, func(e v1alpha1.Entry) bool { return e.Step == s.id }) + 1
	m.report(Step{n, max(n, len(m.program)), "undo: " + s.text, done, s.within})
}

func (r *runner) observe(ctx context.Context, e *v1alpha1.Entry, result audit.Result) error {
	if r.Observe == nil {
		return nil
	}
	return r.Observe(ctx, r.rem, e, result)
}

// remark tells of what has happened: that it cannot be told does not undo it, and
// nothing more is begun then.
func (r *runner) remark(ctx context.Context, e *v1alpha1.Entry, result audit.Result) {
	if err := r.observe(ctx, e, result); err != nil {
		r.Logger.ErrorContext(ctx, "a step is not on record", "plan", r.rem.Name, "result", result, "error", err)
	}
}

// turnBack begins the way back or, when that failed too, ends.
func (m *machine) turnBack(ctx context.Context, s step, why error) error {
	st := m.status()
	m.failed = errors.Join(m.failed, why)
	if !m.undoing() {
		st.Failure, st.EndsAs = why.Error(), phaseOf(why)
		if left := m.left(); left != "" {
			m.failed = fmt.Errorf("%w (done before, and left so: %s)", m.failed, left)
			st.Failure = m.failed.Error()
		}
		st.Phase = v1alpha1.Undoing
		if m.DryRun {
			st.Phase, st.Message = st.EndsAs, st.Failure
			return nil
		}
		return m.save(ctx)
	}
	if s.parks && st.EndsAs != v1alpha1.Parked {
		st.EndsAs, st.Parking = v1alpha1.Parked, s.id
		st.Failure = fmt.Sprintf("%s; %v; the node is parked, cordoned on purpose", st.Failure, why)
		m.failed = errors.Join(m.failed, errors.New("the node is parked, cordoned on purpose"))
		return m.save(ctx)
	}
	if st.EndsAs != v1alpha1.Parked {
		st.EndsAs = v1alpha1.Failed
	}
	st.Failure = fmt.Sprintf("%s; %v", st.Failure, why)
	return nil // the steps that remain are tried all the same
}

// phaseOf is where a plan ends that failed for this reason, when all was taken back.
func phaseOf(why error) v1alpha1.Phase {
	switch {
	case errors.Is(why, ErrStale):
		return v1alpha1.Stale
	case errors.Is(why, ErrRefused):
		return v1alpha1.Refused
	case errors.Is(why, ErrHalted): // that is no failure of the plan, nor of the cluster
		return v1alpha1.Stopped
	}
	return v1alpha1.Failed
}

// left names what was done and is not taken back: a patched template is not patched
// back, for that would start its pods once more.
func (m *machine) left() string {
	var out []string
	for i, a := range m.actions() {
		e := m.entry(actionStep(i, a))
		if e != nil && e.Ended != nil && e.Error == "" && a.Relayout == nil {
			out = append(out, fmt.Sprintf("%s %s/%s", a.Verb, strings.ToLower(a.Target.Kind), a.Target.Name))
		}
	}
	return strings.Join(out, ", ")
}

// end closes the journal.
func (m *machine) end(ctx context.Context) error {
	st := m.status()
	now := metav1.NewMicroTime(m.Now())
	st.Ended = &now
	if m.undoing() {
		st.Phase, st.Message = st.EndsAs, st.Failure
	} else {
		st.Phase, st.Message = v1alpha1.Succeeded, m.achieved()
	}
	m.remark(ctx, nil, resultOf(st.Phase))
	return m.save(ctx)
}

// save writes the journal.
func (m *machine) save(ctx context.Context) error {
	if m.Save == nil {
		return nil
	}
	return m.Save(ctx, m.rem)
}
