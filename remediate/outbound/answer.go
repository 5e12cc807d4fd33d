package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/unpend/unpend/remediate/notice"
)

// StatusError is an answer that is no success.
type StatusError struct {
	Code  int
	After time.Duration // when it may be tried again, as the answer says; 0: it does not
	Says  string        // the beginning of its body, on one line
}

func (e *StatusError) Error() string {
	says := fmt.Sprintf("the answer is %d %s", e.Code, http.StatusText(e.Code))
	if e.Says != "" {
		says += ": " + e.Says
	}
	return says
}

// maxSays is the most of a body that an error shows, in bytes.
const maxSays = 300

// Status is the error of an answer, nil of a success; its body is read and closed then. now
// is the time, for a hint that names one.
func Status(a *http.Response, now time.Time) error {
	if a.StatusCode >= 200 && a.StatusCode < 300 {
		return nil
	}
	defer a.Body.Close()
	if to, err := a.Location(); err == nil && a.StatusCode < http.StatusBadRequest {
		return &StatusError{Code: a.StatusCode, Says: "it leads to " + host(to) + ", where nobody follows: write the address that is meant"}
	}
	body, _ := io.ReadAll(io.LimitReader(a.Body, maxSays)) //nolint:errcheck // what can be read of it
	return &StatusError{a.StatusCode, after(a.Header.Get("Retry-After"), now), strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "")), " ")}
}

// after reads Retry-After, seconds or a time:
// https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func after(hint string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(hint); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(hint); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// Told is what an error of a request means to a Notifier: what passes by itself is a
// notice.Passing, what is never taken is notice.ErrRefused, the rest is for an operator to
// mend. An address of more than scheme and host is not in it, nor a secret.
func (c *Client) Told(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	inner := err
	if u, ok := errors.AsType[*url.Error](err); ok {
		inner = u.Err // without the address
		if at, bad := url.Parse(u.URL); bad == nil {
			inner = fmt.Errorf("%s: %w", host(at), u.Err)
		}
	}
	if no, ok := errors.AsType[*forbidden](err); ok {
		return &saying{c.hidden.Replace(doing + ": " + no.words), no}
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &saying{fmt.Sprintf("%s: the answer is larger than %d bytes", doing, large.Limit), large}
	}
	says := &saying{c.hidden.Replace(doing + ": " + inner.Error()), nil}
	if e, ok := errors.AsType[*StatusError](err); ok {
		says.is = e
		return Judge(e.Code, e.After, says)
	}
	if standing(err) {
		return says
	}
	return &notice.Passing{Err: says} // nobody knows whether it was heard
}

// standing says whether a request never got out, for a reason that does not pass by itself.
func standing(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	name, lookup := errors.AsType[*net.DNSError](err)
	return untrusted || lookup && name.IsNotFound
}

// Judge is what an answer that is no success means: err as it is where an operator has to
// mend something.
func Judge(code int, after time.Duration, err error) error {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusProxyAuthRequired:
		return err // who we are, or where we speak to
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return &notice.Passing{Err: err, After: after}
	}
	if code >= http.StatusInternalServerError {
		return &notice.Passing{Err: err, After: after}
	}
	if code < http.StatusBadRequest {
		return err // a redirect, or what no API answers
	}
	return fmt.Errorf("%w: %w", notice.ErrRefused, err)
}

// saying is an error of which only the words are shown.
type saying struct {
	words string
	is    error
}

func (e *saying) Error() string { return e.words }

func (e *saying) Unwrap() error { return e.is }

// Once makes a request and returns the body of the success; its errors are those of Told.
func (c *Client) Once(ctx context.Context, doing string, make func(context.Context) (*http.Request, error)) ([]byte, error) {
	r, err := make(ctx)
	if err != nil {
		return nil, err
	}
	a, err := c.http.Do(r)
	if err != nil {
		return nil, c.Told(doing, err)
	}
	defer a.Body.Close()
	if err := Status(a, c.clock.Now()); err != nil {
		return nil, c.Told(doing, err)
	}
	body, err := io.ReadAll(a.Body)
	return body, c.Told(doing, err)
}

// Send is Once, again after what passes: as the answer asks, for minutes at most.
func (c *Client) Send(ctx context.Context, doing string, make func(context.Context) (*http.Request, error)) (body []byte, err error) {
	err = notice.Retry(ctx, c.clock, func(ctx context.Context) error {
		body, err = c.Once(ctx, doing, make)
		return err
	})
	return body, err
}

// Hints is a transport of a library that keeps no Retry-After: an answer that is no success
// is an error, a StatusError.
type Hints struct {
	http.RoundTripper
	Now func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (h Hints) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := h.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := Status(a, h.Now()); err != nil {
		return nil, err
	}
	return a, nil
}

// bounded checks where requests go, and bounds what comes back.
type bounded struct {
	next  http.RoundTripper
	check func(*url.URL) error
	most  int64
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := b.check(r.URL); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	a, err := b.next.RoundTrip(r)
	if err == nil {
		a.Body = http.MaxBytesReader(nil, a.Body, b.most)
	}
	return a, err
}
