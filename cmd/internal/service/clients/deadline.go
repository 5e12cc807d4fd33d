package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// How long an API server may take to begin an answer, and to end it. Its own limit is
// 60 s (--request-timeout); one that has said nothing for half of that has hung.
const (
	answerWithin = 30 * time.Second
	wholeWithin  = 5 * time.Minute
)

// errHung is what a request ends with that was not answered.
var errHung = errors.New("the API server did not answer")

// Hurried ends requests that are not answered: client-go waits for ever, and a service
// that is started while the API server hangs would never come up. Watches stay open.
func Hurried(next http.RoundTripper) http.RoundTripper { return deadline{next, answerWithin} }

type deadline struct {
	next  http.RoundTripper
	limit time.Duration // until an answer begins
}

// RoundTrip implements http.RoundTripper.
func (d deadline) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") != "" {
		return d.next.RoundTrip(r)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(d.limit, func() { cancel(errHung) })
	end := func() {
		timer.Stop()
		cancel(nil)
	}
	resp, err := d.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if errors.Is(context.Cause(ctx), errHung) {
			err = fmt.Errorf("%w within %s: %w", errHung, d.limit, err)
		}
		end()
		return nil, err
	}
	timer.Reset(wholeWithin)
	resp.Body = &untilRead{resp.Body, end}
	return resp, nil
}

// untilRead is a body whose deadline goes with it.
type untilRead struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (u *untilRead) Close() error {
	defer u.end()
	return u.ReadCloser.Close()
}
