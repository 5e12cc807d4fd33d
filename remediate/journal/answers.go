package journal

import (
	"errors"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DelayOf is how long an API server that cannot answer now wants to be left alone.
func DelayOf(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// Transient says whether an error is that of an API server that cannot answer just now:
// a step that waits anyway asks again.
func Transient(err error) bool {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return true
	}
	return apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
