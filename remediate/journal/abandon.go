package journal

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// ErrTakenOver is what Save says when somebody else has written the journal since: they
// carry the plan on, and nothing more may be written by this process.
var ErrTakenOver = errors.New("another has taken the plan over")

// Abandon has a plan turn back whose carrier is gone: the step that it was at has failed
// for that reason. What the step had written, or had not, its way back finds out. False:
// it has not begun a step, and there is nothing to take back.
func Abandon(rem *v1alpha1.Remediation, why string, now time.Time) bool {
	st := &rem.Status
	if st.Phase == v1alpha1.Undoing {
		return true
	}
	if len(st.Journal) == 0 {
		return false
	}
	e := &st.Journal[len(st.Journal)-1]
	if e.Ended == nil {
		ended := metav1.NewMicroTime(now)
		if ended.Before(&e.Began) {
			ended = e.Began // by another's clock
		}
		e.Ended = &ended
	}
	e.Error = why
	st.Failure, st.EndsAs, st.Phase = why, v1alpha1.Stopped, v1alpha1.Undoing
	return true
}
