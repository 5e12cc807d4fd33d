// Package idle asks Prometheus what pods did with their GPUs, by the metrics of
// NVIDIA's DCGM exporter. It is the only room that speaks Prometheus' API.
//
// Rules of this package:
//   - Idle is who was seen idle: every GPU, in every part of the window. What is
//     missing, in gaps or not a number is unknown, never idle.
//   - The most counts, never the average: a training step that paused for most of
//     the window has worked in the rest.
//   - CPU says nothing about a GPU and is not looked at.
package idle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Options say which Prometheus to ask and what idle means. The zero value of each field but
// Address takes its default.
type Options struct {
	// Address of Prometheus, or of what speaks its HTTP API: http or https, with the
	// path it is served under.
	Address string
	// TokenFile holds a bearer token; it is read again for each request, for the
	// kubelet renews it. Empty: none is sent.
	TokenFile string
	// Window is how long a pod has to do nothing: 30 min, so that no step of a
	// training (loading, a checkpoint, an evaluation) is as long.
	Window time.Duration
	// Threshold is how much of the time a GPU may work and still be idle, in percent:
	// 5, for monitoring itself and a framework's own upkeep are seen as work.
	Threshold float64
	// Deadline bounds one measurement: 2 s, for a diagnosis waits for it.
	Deadline time.Duration
	// Now is the clock; time.Now by default.
	Now func() time.Time
}

const (
	// parts is how many parts of the window have to hold a sample each, and longest
	// how long such a part may be: two intervals of Prometheus' default of 1 min.
	parts   = 15
	longest = 2 * time.Minute
	// maxWindow keeps an answer below Prometheus' limit of 11,000 points.
	maxWindow = 7 * 24 * time.Hour
	// lookBack is how far back the last work of an idle pod is searched for, and maxBack
	// is the most parts of that time: a day of 2 min.
	lookBack = 24 * time.Hour
	maxBack  = 720
	// maxNamed is how many pods are asked for by name; of more, all of their namespaces
	// are.
	maxNamed = 200
	// pause is how long a Prometheus that failed is not asked again: the diagnoses of
	// a storm must not wait for it one by one.
	pause = 30 * time.Second
)

// Client asks one Prometheus. It may be used by several goroutines.
type Client struct {
	opts Options
	api  promv1.API

	mu     sync.Mutex
	failed time.Time // when it last did
	why    error
}

// New checks the options. The error says which of them cannot be used.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.Address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address of Prometheus is to be http(s)://HOST[:PORT][/PATH], without a password")
	}
	setDefaults(&o)
	switch {
	case o.Window < time.Second || o.Window > maxWindow:
		return nil, fmt.Errorf("idle window %s: use 1s to %s", o.Window, maxWindow)
	case o.Threshold < 0 || o.Threshold > 100:
		return nil, fmt.Errorf("idle threshold %g: use a percentage, 0 to 100", o.Threshold)
	}
	client, err := api.NewClient(api.Config{Address: o.Address, Client: &http.Client{
		Transport: transport{next: api.DefaultRoundTripper, tokenFile: o.TokenFile}, CheckRedirect: refuseRedirect}})
	if err != nil {
		return nil, fmt.Errorf("prepare to ask Prometheus: %w", err)
	}
	return &Client{opts: o, api: promv1.NewAPI(client)}, nil
}

func setDefaults(o *Options) {
	if o.Window == 0 {
		o.Window = 30 * time.Minute
	}
	if o.Threshold == 0 {
		o.Threshold = 5
	}
	if o.Deadline == 0 {
		o.Deadline = 2 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Measure is an diagnosis.Measure. An error says in one clause why Prometheus told
// nothing; it comes within the deadline, or at once for a while after another.
func (c *Client) Measure(ctx context.Context, at time.Time, holders []diagnosis.Holder) (map[diagnosis.PodName]diagnosis.Use, error) {
	if err := c.paused(); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, c.opts.Deadline, errSlow{c.opts.Deadline})
	defer cancel()
	uses, err := c.measure(bounded, at, holders)
	if err != nil {
		err = fmt.Errorf("ask Prometheus %s: %w", host(c.opts.Address), plain(bounded, err))
		if ctx.Err() == nil {
			c.mu.Lock()
			c.failed, c.why = c.opts.Now(), err
			c.mu.Unlock()
		}
		return nil, err
	}
	return uses, nil
}

func (c *Client) paused() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil && c.opts.Now().Sub(c.failed) < pause {
		return c.why
	}
	return nil
}

func (c *Client) measure(ctx context.Context, at time.Time, holders []diagnosis.Holder) (map[diagnosis.PodName]diagnosis.Use, error) {
	if len(holders) == 0 {
		return nil, nil
	}
	window := c.window(at)
	seen, err := c.look(ctx, window, holders)
	if err != nil {
		return nil, err
	}
	uses := make(map[diagnosis.PodName]diagnosis.Use, len(holders))
	var idle []diagnosis.Holder
	for _, h := range holders {
		u := c.judge(h, at, seen[h.PodName])
		if uses[h.PodName] = u; u.Idle {
			idle = append(idle, h)
		}
	}
	back := window.back()
	if len(idle) == 0 || back.n == window.n {
		return uses, nil
	}
	// That they are idle is settled. If nobody knows since when, it is since the
	// window began.
	if seen, err = c.look(ctx, back, idle); err != nil {
		return uses, nil
	}
	for _, h := range idle {
		u := uses[h.PodName]
		u.Since = c.since(h, back, back.n-window.n, seen[h.PodName])
		uses[h.PodName] = u
	}
	return uses, nil
}

// look reads all metrics of the holders.
func (c *Client) look(ctx context.Context, g grid, holders []diagnosis.Holder) (seen, error) {
	read := make([]model.Matrix, len(metrics))
	anyWhole := slices.ContainsFunc(holders, func(h diagnosis.Holder) bool { return !h.MIG })
	group, ctx := errgroup.WithContext(ctx)
	for i, m := range metrics {
		if m.whole && !anyWhole {
			continue
		}
		group.Go(func() (err error) {
			read[i], err = c.query(ctx, m.name, m.match(), g, holders)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s := seen{}
	for i, m := range metrics { // those of instances first: they tell which pods have some
		if m.whole {
			s.addWhole(read[i], g, m.scale)
		} else {
			s.add(read[i], g, m.scale)
		}
	}
	return s, nil
}

// errSlow is the cause of a deadline that has passed.
type errSlow struct{ after time.Duration }

func (e errSlow) Error() string { return "no answer within " + e.after.String() }

// plain is what an error of the client library says for a person: without the
// request it repeats.
func plain(ctx context.Context, err error) error {
	if slow, ok := errors.AsType[errSlow](context.Cause(ctx)); ok {
		return slow
	}
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("answers with more than %d bytes", long.Limit)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok {
		return dial.Err
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

// host is the part of an address that names who is asked.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
