package fairqueue

import (
	"context"
	"time"
)

// Changed tells that something changed which diagnoses rely on: those of one namespace, or
// (empty) all.
func (q *Queue) Changed(namespace string) {
	q.mu.Lock()
	q.changed[namespace] = true
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default: // somebody is awake
	}
}

// follow has what is known looked at again once changes have settled.
func (q *Queue) follow(ctx context.Context) {
	pause := func(d time.Duration) bool {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
			return true
		}
	}
	idle := time.NewTicker(unasked)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		case <-idle.C:
			q.Changed("")
			continue
		}
		if !pause(q.opts.Settle) {
			return
		}
		q.again()
		// What is due already comes first, and tells how long it takes. Where that never ends,
		// somebody makes new incidents all the time: others do not wait for those.
		for began := q.opts.Now(); q.due.Len() > 0 && q.opts.Now().Sub(began) < drained; {
			if !pause(q.opts.Settle) {
				return
			}
		}
		if !pause(rest * q.rested()) {
			return
		}
	}
}

// again has every incident looked at that relies on what changed.
func (q *Queue) again() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for namespace, t := range q.tenants {
		if !q.changed[""] && !q.changed[namespace] {
			continue
		}
		for id, e := range t.entries {
			if e.left || e.failed >= tries && q.opts.Now().Sub(e.looked) < unasked {
				continue
			}
			if e.again = true; e.asked.IsZero() {
				e.asked = q.opts.Now()
			}
			q.due.Add(key{namespace, id})
		}
	}
	clear(q.changed)
	q.settled = q.opts.Now()
}

func (q *Queue) rested() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	busy := q.busy
	q.busy = 0
	return busy
}
