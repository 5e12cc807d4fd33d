package notice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Clock is the time that a notifier waits by.
type Clock struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // the error is the context's
}

// System is the machine's clock.
func System() Clock {
	return Clock{Now: time.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		due := time.NewTimer(d)
		defer due.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due.C:
			return nil
		}
	}}
}

// Passing is an error that passes by itself.
type Passing struct {
	Err   error
	After time.Duration // what the vendor asks for; 0: it does not say
}

func (p *Passing) Error() string { return p.Err.Error() }

func (p *Passing) Unwrap() error { return p.Err }

const (
	// patience is how long one call tries in all; after that the caller has the choice.
	patience = 5 * time.Minute
	// first and longest are the waits where the vendor asks for none.
	first, longest = time.Second, 30 * time.Second
	// often is from how many failures on one after another somebody hears of them: one or two are
	// a limit on the rate, or a server that starts again.
	often = 3
)

type hearer struct{}

// Heard is a context in which troubled hears of each failure of a Retry from its third one on,
// while it goes on trying: who waits for minutes says why.
func Heard(ctx context.Context, troubled func(error)) context.Context {
	return context.WithValue(ctx, hearer{}, troubled)
}

// Retry calls op until its error is not a Passing one, waiting in between: longer each time,
// and as long as the vendor asks for. What does not pass within minutes is handed back.
func Retry(ctx context.Context, clock Clock, op func(context.Context) error) error {
	waits := backoff.NewExponentialBackOff(backoff.WithInitialInterval(first), backoff.WithMaxInterval(longest), backoff.WithMaxElapsedTime(0))
	until := clock.Now().Add(patience)
	for tries := 1; ; tries++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := op(ctx)
		if cause := ctx.Err(); err != nil && cause != nil {
			return cause
		}
		passing, ok := errors.AsType[*Passing](err)
		if !ok {
			return err
		}
		wait := max(waits.NextBackOff(), passing.After)
		if clock.Now().Add(wait).After(until) {
			return fmt.Errorf("tried %d times: %w", tries, passing.Err)
		}
		if troubled, ok := ctx.Value(hearer{}).(func(error)); ok && tries >= often {
			troubled(passing.Err)
		}
		if err := clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
