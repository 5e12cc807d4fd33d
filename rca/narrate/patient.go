package narrate

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Doer sends a request, as an http.Client does.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// tries of one question, the first included.
const tries = 4

// patient asks a server again that is busy or broken, as it says when. go-openai does not, and
// keeps no Retry-After. It never waits beyond the deadline of the request's context.
type patient struct {
	next   Doer
	budget *budget
}

// Do implements Doer.
func (p patient) Do(r *http.Request) (*http.Response, error) {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(250*time.Millisecond), backoff.WithMaxElapsedTime(0))
	for try := 1; ; try++ {
		if !p.budget.take() {
			return nil, errBudget
		}
		answer, err := p.next.Do(r)
		wait := pauses.NextBackOff()
		if err == nil {
			wait = max(wait, after(answer.Header.Get("Retry-After"), p.budget.now()))
		}
		if !passes(answer, err) || try == tries || !fits(r, wait) || !rewound(r) {
			return answer, err
		}
		if err == nil {
			answer.Body.Close() //nolint:errcheck // nothing of it is wanted
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-r.Context().Done():
			pause.Stop()
			return nil, r.Context().Err()
		}
	}
}

// passes says whether an answer may be another one soon.
func passes(a *http.Response, err error) bool {
	if err != nil {
		return true
	}
	switch a.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return a.StatusCode >= http.StatusInternalServerError
}

// fits says whether there is time to wait.
func fits(r *http.Request, wait time.Duration) bool {
	if r.Context().Err() != nil {
		return false
	}
	deadline, ok := r.Context().Deadline()
	return !ok || time.Until(deadline) > wait
}

// rewound has the request sent again from its beginning.
func rewound(r *http.Request) bool {
	if r.Body == nil {
		return true
	}
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	r.Body = body
	return err == nil
}

// after reads Retry-After, seconds or a time:
// https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func after(hint string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(hint); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(hint); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

var errBudget = errors.New("as many requests were sent in the last hour as narrate.perHour allows")

// budget is how many requests are sent in any hour, by this process.
type budget struct {
	most int
	now  func() time.Time
	mu   sync.Mutex
	sent []time.Time // within the hour, oldest first
}

// take counts a request, or says that there may be none.
func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.sent = slices.DeleteFunc(b.sent, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if len(b.sent) >= b.most {
		return false
	}
	b.sent = append(b.sent, now)
	return true
}
