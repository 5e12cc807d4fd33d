package embed

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	// tries is how often a request is made in all.
	tries = 3
	// longest is how long is waited at most between two.
	longest = 30 * time.Second
	// maxAnswer is the most of an answer that is read: 64 vectors of 4,096 numbers are
	// some 6 MB.
	maxAnswer = 32 << 20
)

// patient asks again when the endpoint is busy, after as long as it says: go-openai does
// not, and hides the hint.
type patient struct{ http *http.Client }

func (p *patient) Do(r *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		a, err := p.http.Do(r)
		if err != nil {
			return nil, err
		}
		busy := a.StatusCode == http.StatusTooManyRequests || a.StatusCode == http.StatusServiceUnavailable
		wait, known := after(a.Header.Get("Retry-After"), time.Now())
		if !known {
			wait = time.Second << (try - 1)
		}
		if !busy || try == tries || wait > longest || r.GetBody == nil {
			a.Body = struct {
				io.Reader
				io.Closer
			}{io.LimitReader(a.Body, maxAnswer), a.Body}
			return a, nil
		}
		a.Body.Close() //nolint:errcheck // another answer is asked for
		if err := pause(r.Context(), wait); err != nil {
			return nil, err
		}
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
}

// after reads Retry-After, seconds or a time:
// https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func after(hint string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.Atoi(hint); err == nil && n >= 0 {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(hint); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
