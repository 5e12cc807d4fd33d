package parts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A part that panics ends the others, and the reason is told.
func TestPanicEndsTheProcess(t *testing.T) {
	all, ctx := New(t.Context())
	all.Begin("waits", func() error {
		<-ctx.Done()
		return ctx.Err()
	})
	all.Begin("watch", func() error { panic("non-positive interval") })
	ended := make(chan error, 1)
	go func() { ended <- all.Wait() }()
	select {
	case err := <-ended:
		if err == nil || !strings.HasPrefix(err.Error(), "watch: panic: non-positive interval\n") || errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it hangs")
	}
}
