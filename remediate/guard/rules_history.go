package guard

import (
	"cmp"
	"slices"
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// stopsOfHour counts the pods that plans of the last hour have stopped, and those that plans
// under way still will.
func stopsOfHour(q *question) Verdict {
	own := stops(q.plan)
	if own == 0 {
		return Verdict{}
	}
	total := own
	var past []*v1alpha1.Remediation
	for r := range q.others() {
		switch {
		case r.Status.Phase.Begun():
			total += max(stopped(r), stops(r))
		case stopped(r) > 0 && r.Status.Phase.Ended() && within(q.view.Now, endedAt(r), time.Hour):
			total += stopped(r)
			past = append(past, r)
		}
	}
	limit := q.limits.EvictionsPerHour
	if total <= limit {
		return Verdict{}
	}
	return q.wait(q.roomAt(past, total), "%d pods were or are being stopped within the hour, with the %d of this plan it would be %d, the limit is %d: wait, or raise evictionsPerHour in ConfigMap %s",
		total-own, own, total, limit, ConfigMap)
}

// roomAt is when enough plans of the past hour are an hour old; zero when only the
// end of those under way makes room.
func (q *question) roomAt(past []*v1alpha1.Remediation, total int) time.Time {
	slices.SortFunc(past, func(a, b *v1alpha1.Remediation) int {
		return cmp.Or(endedAt(a).Compare(endedAt(b)), cmp.Compare(a.Name, b.Name))
	})
	for _, r := range past {
		if total -= stopped(r); total <= q.limits.EvictionsPerHour {
			return endedAt(r).Add(time.Hour)
		}
	}
	return time.Time{}
}

// coolDown leaves a node alone for a while after it was changed, so that what came
// of it shows.
func coolDown(q *question) Verdict {
	var last time.Time
	var by *v1alpha1.Remediation
	for r := range q.others() {
		if !changed(r) || !within(q.view.Now, endedAt(r), q.limits.CoolDown) || q.shared(r) == "" {
			continue
		}
		if at := endedAt(r); by == nil || at.After(last) {
			last, by = at, r
		}
	}
	if by == nil {
		return Verdict{}
	}
	until := last.Add(q.limits.CoolDown)
	const says = "node %s was changed at %s by plan %s and is left alone for %s, until %s"
	args := []any{q.shared(by), instant(last), Called(by), short(q.limits.CoolDown), instant(until)}
	if expires := q.limits.expiry(q.plan); !expires.After(until) {
		return refuse(v1alpha1.Refused, says+"; the plan expires before that, at %s: ask for a new one then", append(args, instant(expires))...)
	}
	return q.wait(until, says+"; coolDown in ConfigMap %s sets it", append(args, ConfigMap)...)
}
