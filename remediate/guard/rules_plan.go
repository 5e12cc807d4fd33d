package guard

import (
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

func ended(q *question) Verdict {
	if phase := q.plan.Status.Phase; phase.Ended() {
		return refuse(phase, "the plan has ended: %s; a plan is carried out once, ask for a new one", phase)
	}
	return Verdict{}
}

func expired(q *question) Verdict {
	if at := q.limits.expiry(q.plan); !q.view.Now.Before(at) {
		return refuse(v1alpha1.Expired, "the plan expired at %s, it is %s; plans are good for %s, for what they were proved on changes: ask for a new one",
			instant(at), instant(q.view.Now), short(q.limits.PlanTTL))
	}
	return Verdict{}
}

// superseded finds a newer plan for one of the nodes: it was made knowing more, and
// an old yes must not overtake it.
func superseded(q *question) Verdict {
	for r := range q.others() {
		if r.Status.Phase.Ended() || !newer(r, q.plan) {
			continue
		}
		if node := q.shared(r); node != "" {
			return refuse(v1alpha1.Superseded, "plan %s for node %s is newer (%s, this one %s): decide on that one", Called(r), node,
				instant(r.CreationTimestamp.Time), instant(q.plan.CreationTimestamp.Time))
		}
	}
	return Verdict{}
}

// newer orders by creation, and by name within the same second.
func newer(a, b *v1alpha1.Remediation) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name > b.Name
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

func stopsOfPlan(q *question) Verdict {
	n := stops(q.plan)
	for _, limit := range []struct {
		name string
		most int
	}{{"evictionsPerPlan", q.limits.EvictionsPerPlan}, {"evictionsPerHour", q.limits.EvictionsPerHour}} {
		if n > limit.most {
			return refuse(v1alpha1.Refused, "the plan stops %d pods, the limit is %d: choose another fix, or raise %s in ConfigMap %s", n, limit.most, limit.name, ConfigMap)
		}
	}
	return Verdict{}
}

func paused(q *question) Verdict {
	if q.view.GuardsGone {
		return q.wait(time.Time{}, "ConfigMap %s was deleted, and the kill switch with it: nothing is written until it is there again ('helm upgrade' makes it, with the limits of its values)", ConfigMap)
	}
	if q.view.Paused {
		return q.wait(time.Time{}, "unpend is paused by a person: nothing is written until %s is false in ConfigMap %s", PausedKey, ConfigMap)
	}
	return Verdict{}
}

func breaker(q *question) Verdict {
	const says = ": %s; when the cause is gone, a person resets it: %s"
	command := ResetCommand(q.view.Namespace)
	if state := q.view.Breaker; state.Open {
		return q.wait(time.Time{}, "the breaker is open since %s"+says, instant(state.Since), state.Why, command)
	}
	if why, trips := q.limits.Tripped(q.view, q.view.Breaker.ResetAt); trips {
		return q.wait(time.Time{}, "the breaker opens"+says, why, command)
	}
	return Verdict{}
}

// freeze finds the window that ends last of those that now is in. One that cannot
// be read is taken for one that has no end.
func freeze(q *question) Verdict {
	var last time.Time
	var by *Freeze
	for i := range q.limits.Freeze {
		f := &q.limits.Freeze[i]
		end, err := f.end(q.view.Now)
		if err != nil {
			return q.wait(time.Time{}, "freeze window %d (%s) cannot be read: %v; mend freeze in ConfigMap %s", i, f, err, ConfigMap)
		}
		if end.After(last) {
			last, by = end, f
		}
	}
	if by == nil {
		return Verdict{}
	}
	after := ""
	if expires := q.limits.expiry(q.plan); q.plan.Name != "" && !expires.After(last) {
		after = ", after the plan expires: ask for a new one then"
	}
	return q.wait(last, "nothing is begun in the freeze window (%s), which lasts until %s%s; freeze in ConfigMap %s sets it", by, instant(last), after, ConfigMap)
}
