package kubectl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/remediate/notice"
)

// told is what an error of the API server means to us: what passes, what is never taken,
// and where to mend the rest.
func told(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if passing, ok := errors.AsType[*notice.Passing](err); ok {
		return &notice.Passing{Err: fmt.Errorf("%s: %w", doing, passing.Err), After: passing.After}
	}
	says := fmt.Errorf("%s: %w", doing, err)
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return &notice.Passing{Err: says} // nobody knows whether it was heard
	}
	switch code := status.Status().Code; {
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= http.StatusInternalServerError:
		wait, _ := apierrors.SuggestsClientDelay(err)
		return &notice.Passing{Err: says, After: time.Duration(wait) * time.Second}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), code == http.StatusNotFound:
		return says
	case code == http.StatusForbidden:
		return fmt.Errorf("%w; the chart grants that with kubectl.events, or kubectl.annotations", says)
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%w; the API server does not take the token of our ServiceAccount", says)
	}
	return fmt.Errorf("%w: %w", notice.ErrRefused, says)
}
