package service

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/watcher/incident"
)

// pages is a Notifier that has something to tell by the clock, not by news alone, and that
// is told of the breaker.
type pages interface {
	// Due are the incidents to tell of again by now.
	Due() []string
	// Sent counts what was taken: most of what it is told of is worth no page.
	Sent() int
}

// breakerID is the incident that the breaker is.
const breakerID = "breaker"

// dueEvery is how often it is looked what is due, and at the breaker.
const dueEvery = 10 * time.Second

// again tells of what is due though nothing is news: first of all that is open, for what a
// process before this one would have told.
func (k *sink) again(ctx context.Context, n pages) error {
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	known := false
	for {
		ids := n.Due()
		if !known {
			open, err := k.open(ctx)
			ids, known = open, err == nil
		}
		for _, id := range append([]string{breakerID}, ids...) {
			if ctx.Err() != nil {
				return nil
			}
			k.once(ctx, id) //nolint:errcheck // it is noted, and due again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// open are the incidents that wait, and those whose plan is parked.
func (k *sink) open(ctx context.Context) (ids []string, err error) {
	seen := map[string]bool{}
	add := func(id string) {
		if !seen[id] {
			seen[id], ids = true, append(ids, id)
		}
	}
	err = k.bus.Kept(ctx, bus.Incidents, func(body []byte) error {
		var i incident.Incident
		if json.Unmarshal(body, &i) == nil && !i.Resolved {
			add(i.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, k.bus.Kept(ctx, bus.Outcomes, func(body []byte) error {
		var n notice.Notice
		if json.Unmarshal(body, &n) == nil && n.What == notice.Parked {
			add(n.Incident)
		}
		return nil
	})
}

// sent counts what the place took; -1 where it does not count.
func (k *sink) sent() int {
	if n, ok := k.Notifier.(pages); ok {
		return n.Sent()
	}
	return -1
}

// breaker is what there is to tell of the breaker. One that is not there was never opened.
func (k *sink) breaker(ctx context.Context) (notice.Proposal, error) {
	p := notice.Proposal{Incident: breakerID, Alarm: "the breaker is closed"}
	namespace := k.config.Namespace()
	m, err := k.client.CoreV1().ConfigMaps(namespace).Get(ctx, guard.BreakerConfigMap, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return p, fmt.Errorf("read the breaker: %w", err)
	}
	var s guard.BreakerState
	if err == nil {
		s, _ = guard.ReadBreaker(m.Data) //nolint:errcheck // one that cannot be read is open, and says why
	}
	if p.Read = s.Since; s.Open {
		p.Alarm = fmt.Sprintf("the breaker is open, nothing is carried out until a person closes it: %s", s.Why)
		return p, nil
	}
	if p.Resolved = s.ResetAt; p.Resolved.IsZero() {
		p.Resolved = time.Unix(0, 0)
	}
	return p, nil
}

// release marks parked plans whose node somebody has given back. What cannot be read is
// still parked.
func (k *sink) release(ctx context.Context, p *notice.Proposal) {
	for i := range p.Plans {
		n := &p.Plans[i]
		if n.What != notice.Parked {
			continue
		}
		if n.Node == "" {
			n.Released = !p.Resolved.IsZero()
			continue
		}
		node, err := k.client.CoreV1().Nodes().Get(ctx, n.Node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			n.Released = true
			continue
		}
		if err != nil {
			continue
		}
		mark, err := diagnosis.OperationOn(node)
		n.Released = err == nil && (mark == nil || mark.Parked == "")
	}
}
