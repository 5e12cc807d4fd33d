package notice

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// What passes is tried again as the vendor asks, what does not is not; patience has an end,
// and so has the context.
func TestRetry(t *testing.T) {
	down, no := errors.New("down"), errors.New("no")
	for name, tc := range map[string]struct {
		says    []error // the last again and again
		want    string
		tries   int
		atLeast time.Duration
	}{
		"at once":              {[]error{nil}, "<nil>", 1, 0},
		"passes":               {[]error{&Passing{Err: down}, &Passing{Err: down}, nil}, "<nil>", 3, time.Second},
		"as long as is wanted": {[]error{&Passing{Err: down, After: time.Minute}, &Passing{Err: down, After: 2 * time.Minute}, nil}, "<nil>", 3, 3 * time.Minute},
		"never":                {[]error{&Passing{Err: down}, no}, "no", 2, 0},
		"wrapped":              {[]error{fmt.Errorf("post: %w", &Passing{Err: down}), nil}, "<nil>", 2, 0},
		"too long":             {[]error{&Passing{Err: down, After: time.Hour}}, "tried 1 times: down", 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, tries := time.Now(), 0
			err := Retry(t.Context(), System(), func(context.Context) error {
				tries++
				return tc.says[min(tries, len(tc.says))-1]
			})
			if took := time.Since(began); fmt.Sprint(err) != tc.want || tries != tc.tries || took < tc.atLeast {
				t.Errorf("%s: %v after %d tries in %s", name, err, tries, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := Retry(t.Context(), System(), func(context.Context) error { return &Passing{Err: down} })
		if took := time.Since(began); !errors.Is(err, down) || took < patience-longest*2 || took > patience {
			t.Errorf("an outage: %v in %s", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began = time.Now()
		if err := Retry(ctx, System(), func(context.Context) error { return &Passing{Err: down, After: time.Minute} }); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("a context that ends: %v after %s", err, time.Since(began))
		}
	})
}

// Who waits hears of what goes on failing, from the third failure on, and not of what passes.
func TestHeard(t *testing.T) {
	down := errors.New("down")
	for fails, want := range map[int]int{0: 0, 2: 0, 3: 1, 5: 3} {
		synctest.Test(t, func(t *testing.T) {
			tries, heard := 0, 0
			ctx := Heard(t.Context(), func(err error) {
				if heard++; !errors.Is(err, down) || tries < often {
					t.Errorf("heard %v after %d tries", err, tries)
				}
			})
			err := Retry(ctx, System(), func(context.Context) error {
				if tries++; tries > fails {
					return nil
				}
				return &Passing{Err: down}
			})
			if err != nil || heard != want {
				t.Errorf("%d failures: heard %d times, want %d: %v", fails, heard, want, err)
			}
		})
	}
}
