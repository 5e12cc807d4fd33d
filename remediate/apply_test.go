package remediate

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A caller that goes away while the API server is away is not held for ever, and is told
// what may be left behind.
func TestWayBackIsNotTriedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := &runner{Deps: Deps{Now: time.Now}.withDefaults(), rem: &v1alpha1.Remediation{}, report: func(Step) {}}
		m := &machine{runner: r, again: map[string]bool{},
			program: []step{{id: "0/cordon", within: time.Minute, try: func(context.Context, *entry) (string, error) {
				cancel()
				return "", ctx.Err()
			}}},
			back: func() []step {
				return []step{{id: "undo/0/release", within: time.Minute, try: func(context.Context, *entry) (string, error) {
					return "", &url.Error{Op: "Get", URL: "https://cluster.example", Err: errors.New("connection refused")}
				}}}
			}}
		began := time.Now()
		err := m.toTheEnd(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "what was begun is not all taken back: a node that has the annotation unpend.dev/operation is left cordoned") {
			t.Error(err)
		}
		if took := time.Since(began); took != 15*time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}
