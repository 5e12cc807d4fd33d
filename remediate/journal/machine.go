package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Machine carries a plan out, a step after the other, on a journal that says where
// it stands. It keeps nothing that is not in the journal or in the cluster.
type Machine struct {
	Options
	rem     *v1alpha1.Remediation
	program Program
	steps   []Step // there
	// again are the steps that the journal, when it was read, said were under way.
	again map[v1alpha1.StepID]bool
	// resumed is the one of them that has not been looked at since.
	resumed v1alpha1.StepID
	// failed is what went wrong, with the errors a caller tells apart.
	failed error
	// The API server wants to be left alone for so long from then on, whatever else
	// has us look at the plan meanwhile.
	asked   time.Duration
	askedAt time.Time
	// saved is when the journal was last written.
	saved time.Time
}

// New makes the machine of a plan, and refuses a journal that the program cannot have
// written: the error names the field.
func New(o Options, rem *v1alpha1.Remediation, p Program) (*Machine, error) {
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	m := &Machine{Options: o, rem: rem, program: p, steps: p.Steps(), again: map[v1alpha1.StepID]bool{}}
	if err := m.sound(); err != nil {
		return nil, err
	}
	for _, e := range rem.Status.Journal {
		if e.Ended == nil {
			m.again[e.Step], m.resumed = true, e.Step
		}
	}
	return m, nil
}

// Wrote says whether the journal of a plan, as it was read, is what the machine wrote last.
func (m *Machine) Wrote(rem *v1alpha1.Remediation) bool {
	return m.rem.ResourceVersion == rem.ResourceVersion
}

// Phase is where the plan stands.
func (m *Machine) Phase() v1alpha1.Phase { return m.rem.Status.Phase }

// Advance goes on until there is nothing to do but wait, and says for how long; zero
// when the plan has come to its end. The error is that of the journal or of the
// context: what goes wrong with a step is in the status.
func (m *Machine) Advance(ctx context.Context) (time.Duration, error) {
	for !m.status().Phase.Ended() {
		wait, err := m.turn(ctx)
		if err != nil || wait > 0 {
			return wait, err
		}
	}
	return 0, nil
}

func (m *Machine) status() *v1alpha1.RemediationStatus { return &m.rem.Status }

func (m *Machine) undoing() bool { return m.status().Phase == v1alpha1.Undoing }

// turn tries the next step once.
func (m *Machine) turn(ctx context.Context) (time.Duration, error) {
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
	m.asked, m.askedAt = DelayOf(err), m.Now()
	unanswered := Transient(err)
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
		return max(m.asked, m.pause(e, now.Sub(e.Began.Time))), nil
	default:
		err = fmt.Errorf("not within %s: %s", s.Within, missing)
	}
	m.endOf(ctx, s, e, err)
	where := "step " + m.status().Progress
	if m.undoing() {
		where = "on the way back"
	}
	return 0, m.turnBack(ctx, s, fmt.Errorf("%s, %s: %w", where, s.Text, err))
}

// grace is how long a step is tried that was taken over past its deadline.
const grace = time.Minute

// overdue judges the deadline of a step that was begun by an executor which has ended
// since, before the step is tried again: one at which every executor ends would be tried
// for ever. An executor that was only away for long finds what came of the step meanwhile,
// within a grace that is on record before the first try.
func (m *Machine) overdue(ctx context.Context, s Step, e *Entry) (missing string, err error) {
	if m.resumed != s.ID {
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

// try asks the step, unless somebody has said stop: nothing stops the way back.
func (m *Machine) try(ctx context.Context, s Step, e *Entry) (string, error) {
	if m.Hold != nil && !m.undoing() {
		if err := m.Hold(ctx); err != nil {
			return "", err
		}
	}
	return s.Try(ctx, e)
}

// pause grows with the time a step has taken: a budget that says no is not asked
// every second for five minutes.
func (m *Machine) pause(e *Entry, waited time.Duration) time.Duration {
	if e.Waited {
		return time.Millisecond
	}
	return min(max(m.Poll, waited/4), 10*m.Poll)
}

// next is the first step that has not ended.
func (m *Machine) next() (Step, bool) {
	list := m.steps
	if m.undoing() {
		list = m.program.WayBack()
	}
	for _, s := range list {
		if e := m.entry(s.ID); e == nil || e.Ended == nil {
			return s, true
		}
	}
	return Step{}, false
}

func (m *Machine) entry(id v1alpha1.StepID) *v1alpha1.Entry {
	for i := range m.status().Journal {
		if m.status().Journal[i].Step == id {
			return &m.status().Journal[i]
		}
	}
	return nil
}

// begin journals a step before it acts; one that is under way already is looked at
// again as it is.
func (m *Machine) begin(ctx context.Context, s Step) (*Entry, error) {
	st := m.status()
	now := metav1.NewMicroTime(m.Now())
	if e := m.entry(s.ID); e != nil {
		if now.Before(&e.Began) { // the clock was set back: nobody waits for it to catch up
			e.Began, e.Deadline = now, metav1.NewMicroTime(now.Add(s.Within))
		}
		return m.line(e, m.again[s.ID]), nil
	}
	line := v1alpha1.Entry{Step: s.ID, Text: s.Text, Began: now, Deadline: metav1.NewMicroTime(now.Add(s.Within))}
	if m.Leads != nil {
		holder, generation, err := m.Leads(ctx)
		if err != nil {
			return nil, err
		}
		line.Leader, line.Generation = holder, generation
	}
	if err := m.Observe.Tell(ctx, m.rem, &line, audit.Begun); err != nil {
		return nil, err
	}
	st.Journal = append(st.Journal, line)
	if !m.undoing() {
		st.Progress = progress(slices.IndexFunc(m.steps, func(o Step) bool { return o.ID == s.ID })+1, len(m.steps))
	}
	if err := m.save(ctx); err != nil {
		return nil, err
	}
	e := m.entry(s.ID)
	m.tell(s, false)
	return m.line(e, false), nil
}

// line is a step's line of the journal, as the step sees it.
func (m *Machine) line(e *v1alpha1.Entry, again bool) *Entry {
	return &Entry{Entry: e, Again: again, save: func(ctx context.Context) error {
		if m.DryRun {
			return nil
		}
		return m.save(ctx)
	}}
}

func (m *Machine) endOf(ctx context.Context, s Step, e *Entry, err error) {
	now := metav1.NewMicroTime(m.Now())
	if now.Time.Before(e.Began.Time) {
		now = e.Began // by another's clock
	}
	e.Ended = &now
	result := audit.Done
	if err != nil {
		e.Error, result = err.Error(), audit.Failed
	}
	m.Observe.Remark(ctx, m.Logger, m.rem, e.Entry, result)
	if err == nil {
		m.tell(s, true)
	}
}

// tell reports a step; those of the way back are counted on from where it began.
func (m *Machine) tell(s Step, done bool) {
	if m.Report == nil {
		return
	}
	if n := slices.IndexFunc(m.steps, func(o Step) bool { return o.ID == s.ID }); n >= 0 {
		m.Report(Progress{n + 1, len(m.steps), s.Text, done, s.Within})
		return
	}
	n := slices.IndexFunc(m.status().Journal, func(e v1alpha1.Entry) bool { return e.Step == s.ID }) + 1
	m.Report(Progress{n, max(n, len(m.steps)), "undo: " + s.Text, done, s.Within})
}

// turnBack begins the way back or, when that failed too, ends.
func (m *Machine) turnBack(ctx context.Context, s Step, why error) error {
	st := m.status()
	m.failed = errors.Join(m.failed, why)
	if !m.undoing() {
		st.EndsAs = phaseOf(why)
		m.failed = m.leaving(m.failed)
		st.Failure = m.failed.Error()
		st.Phase = v1alpha1.Undoing
		if m.DryRun {
			st.Phase, st.Message = st.EndsAs, st.Failure
			return nil
		}
		return m.save(ctx)
	}
	if s.Parks && st.EndsAs != v1alpha1.Parked {
		st.EndsAs, st.Parking = v1alpha1.Parked, s.ID
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

// leaving is an error that says besides what was done and is not taken back.
func (m *Machine) leaving(err error) error {
	if left := m.program.Left(); left != "" {
		return fmt.Errorf("%w (done before, and left so: %s)", err, left)
	}
	return err
}

// phaseOf is where a plan ends that failed for this reason, when all was taken back.
func phaseOf(why error) v1alpha1.Phase {
	switch {
	case errors.Is(why, plan.ErrStale):
		return v1alpha1.Stale
	case errors.Is(why, plan.ErrRefused), apierrors.IsForbidden(why): // no failure of the plan: somebody lacks a right
		return v1alpha1.Refused
	case errors.Is(why, plan.ErrHalted): // that is no failure of the plan, nor of the cluster
		return v1alpha1.Stopped
	}
	return v1alpha1.Failed
}

// end closes the journal.
func (m *Machine) end(ctx context.Context) error {
	st := m.status()
	now := metav1.NewMicroTime(m.Now())
	st.Ended = &now
	after := ""
	if !m.DryRun {
		after = m.program.After(ctx)
	}
	switch {
	case !m.undoing() && after != "":
		st.Phase, st.Message = v1alpha1.Succeeded, m.program.Achieved()+", but "+after
	case !m.undoing():
		st.Phase, st.Message = v1alpha1.Succeeded, m.program.Achieved()
	case after != "":
		st.Phase, st.Message, m.failed = st.EndsAs, st.Failure+"; "+after, fmt.Errorf("%w; %s", m.failed, after)
	default:
		st.Phase, st.Message = st.EndsAs, st.Failure
	}
	m.Observe.Remark(ctx, m.Logger, m.rem, nil, ResultOf(st.Phase))
	return m.save(ctx)
}

// save writes the journal.
func (m *Machine) save(ctx context.Context) error {
	if m.Save == nil {
		return nil
	}
	m.saved = m.Now()
	return m.Save(ctx, m.rem)
}
