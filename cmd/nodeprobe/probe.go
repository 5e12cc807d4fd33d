//go:build cgo

package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
)

const (
	// poll is how often is looked without an event: pods come and go without one.
	// The kubelet takes 100 calls a second.
	poll = 5 * time.Second
	// heartbeat is how old a report gets that did not change; readers stop
	// believing its holders after 5 minutes.
	heartbeat = 2 * time.Minute
	// spread is the time over which probes that start together write first, so
	// that a thousand of them are no storm for the API server.
	spread = time.Minute
	// patience with one call of the API.
	patience = 10 * time.Second
)

// probe looks at the node and publishes what changed. All that it needs is given
// to it, so that it can be driven without a driver, a kubelet or a cluster.
type probe struct {
	// read is one look at the driver; the error is one sentence.
	read func(context.Context) (nodeprobe.Reading, error)
	// wait returns early when the driver has news.
	wait func(context.Context, time.Duration)
	// held asks the kubelet.
	held    func(context.Context) ([]nodeprobe.Allocation, error)
	publish func(context.Context, nodeprobe.Report) error
	now     func() time.Time
	rand    *rand.Rand
	logger  *slog.Logger

	reporter nodeprobe.Reporter
	said     map[string]bool // what was complained about in the last look
}

// run looks and publishes until ctx ends.
func (p *probe) run(ctx context.Context) error {
	var published nodeprobe.Report
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(0))
	notBefore := p.now().Add(time.Duration(p.rand.Float64() * float64(spread)))
	due := notBefore
	for ctx.Err() == nil {
		report := p.look(ctx)
		now := p.now()
		if !now.Before(notBefore) && (!now.Before(due) || !alike(report, published)) {
			err := p.send(ctx, report)
			switch {
			case err == nil:
				published = report
				retry.Reset()
				due = now.Add(jittered(p.rand, heartbeat))
			case ctx.Err() == nil:
				pause := retry.NextBackOff()
				notBefore, due = now.Add(pause), now.Add(pause)
				p.logger.WarnContext(ctx, "not published", "why", err, "again", pause.Round(time.Second))
			}
		}
		next := poll
		if left := notBefore.Sub(now); left > 0 {
			next = min(poll, left)
		}
		p.wait(ctx, next)
	}
	return nil
}

// look is one observation made into a report. What is missing is logged when it
// is new, not every time.
func (p *probe) look(ctx context.Context) nodeprobe.Report {
	at := p.now()
	reading, err := p.read(ctx)
	if err != nil {
		p.complain(ctx, []string{err.Error()})
		return p.reporter.Lost(at)
	}
	held, unread := p.held(ctx)
	report, problems := p.reporter.Report(nodeprobe.Observation{At: at, Reading: reading, Held: held, Unread: unread})
	var missing []string
	if len(reading.GPUs) == 0 {
		missing = append(missing, "no GPU: the driver lists none")
	}
	if unread != nil {
		missing = append(missing, "holders are unknown: "+unread.Error())
	}
	for _, problem := range problems {
		missing = append(missing, problem.String())
	}
	p.complain(ctx, missing)
	return report
}

// complain logs each sentence that was not said of the look before, and once
// that all is well again.
func (p *probe) complain(ctx context.Context, missing []string) {
	if ctx.Err() != nil { // being told to stop is no finding
		return
	}
	said := map[string]bool{}
	for _, m := range missing {
		if !p.said[m] && !said[m] {
			p.logger.WarnContext(ctx, m)
		}
		said[m] = true
	}
	if len(missing) == 0 && len(p.said) > 0 {
		p.logger.InfoContext(ctx, "everything can be read again")
	}
	p.said = said
}

func (p *probe) send(ctx context.Context, r nodeprobe.Report) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.publish(ctx, r)
}

// alike compares what two reports say, whenever they say it.
func alike(a, b nodeprobe.Report) bool {
	a.ObservedAt, b.ObservedAt = metav1.Time{}, metav1.Time{}
	return equality.Semantic.DeepEqual(a, b)
}

// jittered is d, a tenth more or less.
func jittered(r *rand.Rand, d time.Duration) time.Duration {
	return d + time.Duration((r.Float64()*2-1)*float64(d)/10)
}
