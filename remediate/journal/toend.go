package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// ToTheEnd goes on until the plan has ended. What was begun is taken back even when the
// caller has gone away, as far as that can be done in time.
func (m *Machine) ToTheEnd(ctx context.Context) error {
	alone := false
	for !m.status().Phase.Ended() {
		wait, err := m.Advance(ctx)
		if err == nil && wait > 0 {
			err = m.wait(ctx, wait)
		}
		if err == nil {
			continue
		}
		if errors.Is(err, ErrTakenOver) {
			return errors.Join(m.failed, err)
		}
		if ctx.Err() != nil && !alone {
			err = m.leaving(m.interrupted(err))
		}
		m.failed = errors.Join(m.failed, err)
		if alone {
			return fmt.Errorf("%w; what was begun is not all taken back: a node that has the annotation %s is left cordoned", m.failed, diagnosis.OperationAnnotation)
		}
		alone = true
		if !m.undoing() {
			m.status().Failure, m.status().EndsAs = err.Error(), v1alpha1.Failed
			m.status().Phase = v1alpha1.Undoing
		}
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.Patience)
		defer cancel()
		ctx = undo
	}
	if m.failed != nil && !m.DryRun && m.takenBack() {
		what := "what was begun"
		if m.program.Left() != "" {
			what = "what else was begun"
		}
		return fmt.Errorf("%w; %s has been taken back", m.failed, what)
	}
	return m.failed
}

// wait lets time pass, and shows meanwhile that this process is alive.
func (m *Machine) wait(ctx context.Context, d time.Duration) error {
	for d > 0 {
		part := d
		if m.Renew > 0 {
			part = min(d, m.Renew)
		}
		if err := sleep(ctx, part); err != nil {
			return err
		}
		if err := m.renew(ctx); err != nil {
			return err
		}
		d -= part
	}
	return nil
}

// renew writes the journal again when that was long ago. An API server that does not
// answer just now is asked again when the step is.
func (m *Machine) renew(ctx context.Context) error {
	now := m.Now()
	if m.Renew == 0 || now.Sub(m.saved) < m.Renew {
		return nil
	}
	m.status().Renewed = new(metav1.NewMicroTime(now))
	if err := m.save(ctx); !Transient(err) {
		return err
	}
	return nil
}

// takenBack says that something was begun, and that nothing of it is left but what cannot be
// taken back. A plan that is stale says itself what has become of its node.
func (m *Machine) takenBack() bool {
	did, left := false, m.program.Left() != ""
	for _, e := range m.status().Journal {
		back := e.Step.TakesBack()
		if back && (e.Ended == nil || e.Error != "") {
			return false
		}
		_, ofAction := e.Step.Action()
		did = did || e.Error == "" && (!back && !left || back && ofAction)
	}
	return did && m.status().EndsAs != "" && !errors.Is(m.failed, plan.ErrStale)
}

// interrupted is that the caller has gone away, and where that was.
func (m *Machine) interrupted(err error) error {
	if s, ok := m.next(); ok && !m.undoing() {
		return interrupted{fmt.Sprintf("interrupted in step %s, %s", m.status().Progress, s.Text), err}
	}
	return err
}

// interrupted is an end of the context, told by what it ended.
type interrupted struct {
	says string
	error
}

func (i interrupted) Error() string { return i.says }

func (i interrupted) Unwrap() error { return i.error }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
