package guard

import (
	"fmt"
	"iter"
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// nodesOf are the nodes that a plan is about: those it names, and those it writes
// to, should it not name them. A name can come twice.
func nodesOf(r *v1alpha1.Remediation) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range r.Spec.Nodes {
			if !yield(name) {
				return
			}
		}
		for i := range r.Spec.Actions {
			if t := &r.Spec.Actions[i].Target; t.Kind == "Node" && !yield(t.Name) {
				return
			}
		}
	}
}

// takenBy are the nodes that a plan cordons, while it works or for good.
func takenBy(r *v1alpha1.Remediation) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range r.Spec.Actions {
			if a := &r.Spec.Actions[i]; a.Closes() && !yield(a.Target.Name) {
				return
			}
		}
	}
}

// others are the plans of the view but the one that is judged.
func (q *question) others() iter.Seq[*v1alpha1.Remediation] {
	return func(yield func(*v1alpha1.Remediation) bool) {
		for i := range q.view.Plans {
			if r := &q.view.Plans[i]; r.Name != q.plan.Name && !yield(r) {
				return
			}
		}
	}
}

// shared is a node that another plan is about, too; empty when there is none.
func (q *question) shared(r *v1alpha1.Remediation) string {
	for name := range nodesOf(r) {
		if q.nodes[name] {
			return name
		}
	}
	return ""
}

// stops is how many pods a plan stops, whatever stops them.
func stops(r *v1alpha1.Remediation) int {
	pods := map[string]bool{}
	for i := range r.Spec.Actions {
		for _, p := range r.Spec.Actions[i].Stopped() {
			pods[p.UID] = true
		}
	}
	return len(pods)
}

// stopped is how many it has stopped so far.
func stopped(r *v1alpha1.Remediation) int { return r.Status.Evicted + len(r.Status.Restarted) }

// endedAt is when a plan ended, or the latest that its journal tells.
func endedAt(r *v1alpha1.Remediation) time.Time {
	if r.Status.Ended != nil {
		return r.Status.Ended.Time
	}
	last := r.CreationTimestamp.Time
	for _, e := range r.Status.Journal {
		if e.Began.After(last) {
			last = e.Began.Time
		}
		if e.Ended != nil && e.Ended.After(last) {
			last = e.Ended.Time
		}
	}
	return last
}

// changed says whether a plan that has ended left something other than it was: one
// that failed, or was stopped, before its first step did not.
func changed(r *v1alpha1.Remediation) bool {
	switch r.Status.Phase {
	case v1alpha1.Succeeded, v1alpha1.Parked:
		return true
	case v1alpha1.Failed, v1alpha1.Stopped:
		return len(r.Status.Journal) > 0
	case v1alpha1.Refused: // under way, for want of a right
		return stopped(r) > 0
	}
	return false
}

// within says whether t is less than d ago. What a clock that was set back has in
// the future is: it errs on the side of holding back.
func within(now, t time.Time, d time.Duration) bool { return now.Sub(t) < d }

// expiry is when a plan can no longer be begun. What the plan says of itself may
// shorten the time, never lengthen it.
func (l Limits) expiry(r *v1alpha1.Remediation) time.Time {
	own := r.Spec.Expires.Time
	if r.CreationTimestamp.IsZero() { // not recorded yet
		return own
	}
	if limit := r.CreationTimestamp.Add(l.PlanTTL); limit.Before(own) {
		return limit
	}
	return own
}

// Called is how a plan is named to a person.
func Called(r *v1alpha1.Remediation) string {
	return fmt.Sprintf("%s#%d (%.8s)", r.Spec.Incident, r.Spec.Fix, r.Name)
}
