package knowledge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Clock is what a source that is asked over the network waits by.
type Clock struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // until then, or until ctx ends, which is its error
}

// System is the machine's clock.
func System() Clock {
	return Clock{Now: time.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		}
	}}
}

// Passing is an error of a source that passes by itself: after a time, where it says so.
type Passing struct {
	Err   error
	After time.Duration
}

func (e *Passing) Error() string { return e.Err.Error() }

func (e *Passing) Unwrap() error { return e.Err }

const (
	firstPause, longestPause = time.Second, 2 * time.Minute
	// patience is how long a source may go on failing without saying until when.
	patience = 15 * time.Minute
)

// Patiently calls ask until its error is no Passing one, waiting in between: as long as the
// source asks for, or longer each time. What does not pass in a quarter of an hour is handed
// back.
func (c Clock) Patiently(ctx context.Context, ask func() error) error {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(longestPause), backoff.WithMaxElapsedTime(0))
	began := c.Now()
	for tries := 1; ; tries++ {
		err := ask()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		passing, ok := errors.AsType[*Passing](err)
		if !ok {
			return err
		}
		pause := passing.After
		if pause == 0 {
			pause = pauses.NextBackOff()
			if c.Now().Add(pause).Sub(began) > patience {
				return fmt.Errorf("tried %d times: %w", tries, passing.Err)
			}
		}
		if err := c.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// RetryAfter reads the header of that name, seconds or a time; 0 where there is none:
// https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
