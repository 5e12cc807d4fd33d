// Package outbound speaks to the addresses that a configuration names, and is the one way
// to them: a place where people are told, a webhook. Who may write the configuration may
// not have the service speak to what only the service can reach.
//
// Begin at New. Which addresses are refused is in addresses.go, what an answer means to a
// Notifier in answer.go.
//
// Rules of this package:
//   - An address is judged when it is dialed, and that very address is dialed: a name that
//     stands for another one a moment later gains nothing.
//   - No redirect is followed, no proxy asked, and no answer read without a bound.
//   - Of an address no more is said than scheme and host: its path may be a secret.
package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/unpend/unpend/remediate/notice"
)

const (
	// answers is how long one answer may take, its body included.
	answers = 10 * time.Second
	// maxAnswer is the most that is read of an answer, in bytes.
	maxAnswer = 1 << 20
	// maxHeader is the most that is read of an answer's header, in bytes.
	maxHeader = 64 << 10
)

// Options of a Client.
type Options struct {
	// Allow lists what may be spoken to although it is not public: names, addresses and
	// networks (alertmanager.monitoring.svc, 10.0.0.7, 10.0.0.0/8). Only these may be spoken
	// to by plain http. A name never allows link-local or metadata addresses; these are
	// listed themselves, or refused.
	Allow []string
	// Secrets are what may stand in no error.
	Secrets []string
	// Clock that is waited by; the machine's without it.
	Clock notice.Clock
	// Timeout of one answer (10 s).
	Timeout time.Duration
	// MaxAnswer is the most that is read of an answer, in bytes (1 MiB).
	MaxAnswer int64
	// Resolver of names; the machine's without it.
	Resolver *net.Resolver
	// TLS says who is trusted; the machine's authorities without it.
	TLS *tls.Config
}

// Client speaks to addresses of a configuration.
type Client struct {
	http    *http.Client
	clock   notice.Clock
	allowed allowed
	hidden  *strings.Replacer
}

// ErrForbidden is of an address that may not be spoken to.
var ErrForbidden = errors.New("may not be spoken to")

// forbidden says which and why.
type forbidden struct{ words string }

func (e *forbidden) Error() string { return e.words }

// Is says that it is ErrForbidden.
func (e *forbidden) Is(target error) bool { return target == ErrForbidden }

func forbid(format string, of ...any) error { return &forbidden{fmt.Sprintf(format, of...)} }

// New makes one. The error is of an entry of Allow.
func New(o Options) (*Client, error) {
	a, err := allow(o.Allow)
	if err != nil {
		return nil, err
	}
	if o.Clock.Now == nil {
		o.Clock = notice.System()
	}
	if o.Timeout == 0 {
		o.Timeout = answers
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = maxAnswer
	}
	c := &Client{clock: o.Clock, allowed: a, hidden: hide(o.Secrets)}
	transport := &http.Transport{DialContext: c.dial(o.Resolver), TLSClientConfig: o.TLS, ForceAttemptHTTP2: true, TLSHandshakeTimeout: o.Timeout, MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: o.Timeout}
	c.http = &http.Client{Timeout: o.Timeout, Transport: &bounded{next: transport, check: c.Check, most: o.MaxAnswer}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// HTTP is the same for a library that wants an http.Client. Its errors are for Told.
func (c *Client) HTTP() *http.Client { return c.http }

// Clock is what it waits by.
func (c *Client) Clock() notice.Clock { return c.clock }

// Check says of an address whether it could be spoken to at all, before any name in it is
// looked up: where a configuration is read, and before each request.
func (c *Client) Check(u *url.URL) error {
	name := u.Hostname()
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return forbid("%s may not be spoken to: it begins with neither https:// nor http://", host(u))
	case name == "":
		return forbid("%s may not be spoken to: it names no host", host(u))
	case u.User != nil:
		return forbid("%s may not be spoken to: a user and password in the address would be shown; name a file that holds them", host(u))
	case u.Scheme == "http" && !c.allowed.plainly(name):
		return forbid("%s may not be spoken to without TLS: write https://, or list %s in outbound.allow", host(u), name)
	}
	return nil
}

// Parse reads an address of a configuration and checks it; key is where it stands.
func (c *Client) Parse(key, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s is no address", key) // the error would show all of it
	}
	if err := c.Check(u); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return u, nil
}

// dial judges each address that a name stands for just before it is dialed.
func (c *Client) dial(names *net.Resolver) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		name, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
		d := net.Dialer{Timeout: answers, Resolver: names, Control: func(_, to string, _ syscall.RawConn) error { return c.allowed.judge(name, to) }}
		return d.DialContext(ctx, network, address)
	}
}

// host is what may be said of an address.
func host(u *url.URL) string {
	if u.Host == "" {
		return "an address without a host"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// hide takes secrets out of texts.
func hide(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, "(secret)", url.QueryEscape(s), "(secret)")
		}
	}
	return strings.NewReplacer(pairs...)
}
