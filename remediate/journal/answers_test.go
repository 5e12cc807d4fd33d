package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// An API server that cannot answer just now is told from one that says no.
func TestTransient(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, tc := range []struct {
		err       error
		transient bool
		delay     time.Duration
	}{
		{nil, false, 0},
		{errors.New("no"), false, 0},
		{&url.Error{Op: "Get", Err: errors.New("connection refused")}, true, 0},
		{apierrors.NewInternalError(errors.New("etcd")), true, 0},
		{apierrors.NewServerTimeout(pods, "get", 3), true, 3 * time.Second},
		{apierrors.NewTimeoutError("slow", 0), true, 0},
		{apierrors.NewTooManyRequests("later", 5), true, 5 * time.Second},
		{apierrors.NewServiceUnavailable("starting"), true, 0},
		{apierrors.NewNotFound(pods, "a"), false, 0},
		{apierrors.NewConflict(pods, "a", errors.New("written")), false, 0},
		{apierrors.NewForbidden(pods, "a", errors.New("no right")), false, 0},
	} {
		for _, err := range []error{tc.err, fmt.Errorf("read it: %w", tc.err)} {
			if tc.err == nil && err != nil {
				continue
			}
			if Transient(err) != tc.transient || DelayOf(err) != tc.delay {
				t.Errorf("%v: transient %v, after %s; want %v, %s", err, Transient(err), DelayOf(err), tc.transient, tc.delay)
			}
		}
	}
}

// The trail has a word of its own for how a plan ended.
func TestResultOf(t *testing.T) {
	want := map[v1alpha1.Phase]audit.Result{v1alpha1.Succeeded: audit.Done, v1alpha1.Parked: audit.Parked, v1alpha1.Failed: audit.Undone, v1alpha1.Stopped: audit.Stopped,
		v1alpha1.Rejected: audit.Rejected, v1alpha1.Stale: audit.Refused, v1alpha1.Expired: audit.Refused, v1alpha1.Refused: audit.Refused, v1alpha1.Superseded: audit.Refused}
	for _, p := range v1alpha1.Phases() {
		if p.Ended() && ResultOf(p) != want[p] {
			t.Errorf("%s is %s, want %s", p, ResultOf(p), want[p])
		}
	}
}

// That something cannot be told once it has happened is logged; without anybody to tell
// there is nothing to say.
func TestRemark(t *testing.T) {
	rem := &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for want, o := range map[string]Observer{
		"": nil,
		`level=ERROR msg="a step is not on record" plan=p result=done error="the disk is full"`: func(context.Context, *v1alpha1.Remediation, *v1alpha1.Entry, audit.Result) error {
			return errors.New("the disk is full")
		},
	} {
		var out strings.Builder
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		if o.Remark(t.Context(), logger, rem, nil, audit.Done); strings.TrimSpace(out.String()) != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}
