package fairqueue

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/unpend/unpend/watcher/incident"
)

// look diagnoses one incident, unless it waits no more.
func (q *Queue) look(ctx context.Context, k key) {
	i, asked, again, ok := q.begin(k)
	if !ok {
		return
	}
	var read time.Time
	if again {
		read = q.settledAt()
	}
	began := q.opts.Now()
	news, err := q.guarded(ctx, i, read)
	if ctx.Err() != nil {
		return
	}
	ended := q.opts.Now()
	if err == nil {
		q.late.Observe(ended.Sub(asked).Seconds())
	}
	if gaveUp := q.end(k, news, err, ended, again, ended.Sub(began)); gaveUp {
		q.opts.GiveUp(ctx, i, err)
	}
}

func (q *Queue) begin(k key) (i incident.Incident, asked time.Time, again, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.known(k)
	if e == nil || e.left || e.asked.IsZero() {
		return i, asked, false, false
	}
	if now := q.opts.Now(); e.failed == 0 && e.due().After(now) { // there was news while it was looked at
		q.due.AddAfter(k, e.due().Sub(now))
		return i, asked, false, false
	}
	i, asked, again = e.incident, e.due(), e.again
	e.asked, e.again = time.Time{}, false
	return i, asked, again, true
}

// end notes how it went. It says whether this was the last try.
func (q *Queue) end(k key, news bool, err error, ended time.Time, again bool, took time.Duration) (gaveUp bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended = ended; again {
		q.busy += took
	}
	e := q.known(k)
	if e == nil {
		return false // it was resolved meanwhile
	}
	e.looked = ended
	switch {
	case err != nil:
		if e.failed++; e.failed >= tries {
			return e.failed == tries // afterwards it was known
		}
		if e.asked.IsZero() {
			e.asked = ended
		}
		q.due.AddAfter(k, retryIn<<(e.failed-1))
		return false
	case news:
		e.pace = 0
	case !again:
		e.pace = min(max(2*e.pace, firstPace), lastPace)
	}
	e.failed = 0
	return false
}

// guarded turns a panic into an error: one incident that nobody can diagnose must not take
// the others with it.
func (q *Queue) guarded(ctx context.Context, i incident.Incident, read time.Time) (news bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return q.opts.Diagnose(ctx, i, read)
}

func (q *Queue) settledAt() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.settled
}
