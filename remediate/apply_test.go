package remediate

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
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

// Who presses Ctrl-C is told of the way back as it is gone, and at its end where that
// was and what is left: nothing. A dry run has begun nothing.
func TestInterrupted(t *testing.T) {
	for _, tc := range []struct {
		name  string
		dry   bool
		fails error
		want  string
		steps []Step
	}{
		{"by Ctrl-C", false, nil, "interrupted in step 2/2, wait; what was begun has been taken back",
			[]Step{{1, 2, "cordon", false, time.Minute}, {1, 2, "cordon", true, time.Minute}, {2, 2, "wait", false, time.Minute}, {3, 3, "undo: uncordon", false, time.Minute}, {3, 3, "undo: uncordon", true, time.Minute}}},
		{"by a failure", false, errors.New("no"), "step 2/2, wait: no; what was begun has been taken back",
			[]Step{{1, 2, "cordon", false, time.Minute}, {1, 2, "cordon", true, time.Minute}, {2, 2, "wait", false, time.Minute}, {3, 3, "undo: uncordon", false, time.Minute}, {3, 3, "undo: uncordon", true, time.Minute}}},
		{"in a dry run", true, errors.New("no"), "step 2/2, wait: no",
			[]Step{{1, 2, "cordon", false, time.Minute}, {1, 2, "cordon", true, time.Minute}, {2, 2, "wait", false, time.Minute}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := func(context.Context, *entry) (string, error) { return "", nil }
			var told []Step
			r := &runner{Deps: Deps{Now: time.Now, DryRun: tc.dry}.withDefaults(), rem: &v1alpha1.Remediation{}, report: func(s Step) { told = append(told, s) }}
			m := &machine{runner: r, again: map[string]bool{},
				program: []step{{id: "0/cordon", text: "cordon", within: time.Minute, try: done}, {id: "0/wait", text: "wait", within: time.Minute, try: func(context.Context, *entry) (string, error) {
					if tc.fails == nil {
						cancel()
					}
					return "", cmp.Or(tc.fails, ctx.Err())
				}}},
				back: func() []step { return []step{{id: "undo/0/release", text: "uncordon", within: time.Minute, try: done}} }}
			err := m.toTheEnd(ctx)
			if err == nil || err.Error() != tc.want || errors.Is(err, context.Canceled) != (tc.fails == nil) || !slices.Equal(told, tc.steps) {
				t.Errorf("%v, want %s; told of %v", err, tc.want, told)
			}
		})
	}
}
