package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/parts"
	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// sink is a place where people are told. It reads the bus at its own pace, so that one that
// is away holds up no other.
type sink struct {
	*Service
	name      string // of the destination: the place's, with at where that is not empty
	place, at string
	notice.Notifier
	make   func(context.Context) (notice.Notifier, error)
	file   string // that it is told with; empty: none
	errors prometheus.Counter

	turn sync.Mutex // held from the reading of a proposal until it is told: no older one follows

	mu      sync.Mutex // guards what follows
	trouble error      // of the last try
	since   time.Time  // of the first that failed
	plans   map[string]notice.Notice
	wanted  map[string]bool // incidents to be told of again, of which the bus has no news
	snoozed map[string]notice.Snoozed
}

// makes has, by the name of a place, what tells people there.
var makes = map[string]func(context.Context, *Service, settings.Config, memory) (notice.Notifier, error){
	"slack": inSlack, "jira": inJira, "pagerduty": inPagerDuty, "alertmanager": inAlertmanager, "opsgenie": inOpsgenie, "webhook": byWebhook, "kubectl": byKubectl,
}

// sinks are one for every destination that the configuration names and this process tells.
func (s *Service) sinks() ([]*sink, error) {
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_sink_errors_total", Help: "Tries to tell people that failed, by the place; they are made again."}, []string{"sink"})
	if err := s.registry.Register(failed); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	var all []*sink
	for _, p := range settings.Places {
		if !s.does(cmp.Or(p.Role, "notify")) {
			continue
		}
		for _, d := range p.Destinations(s.config) {
			all = append(all, &sink{Service: s, name: d.Name, place: p.Name, at: d.At, errors: failed.WithLabelValues(d.Name), plans: map[string]notice.Notice{}, make: func(ctx context.Context) (notice.Notifier, error) {
				return makes[p.Name](ctx, s, d.Config, memory{s.bus, d.Name})
			}})
			if p.File != nil {
				all[len(all)-1].file = p.File(d.Config)
			}
		}
	}
	return all, nil
}

// made makes what tells the place, once there is what it is told with; the error is that of ctx,
// or says what of the configuration cannot be.
func (k *sink) made(ctx context.Context) (err error) {
	if err = k.until(ctx, k.noted(func(context.Context) error { return secrets.Missing(k.file) })); err != nil {
		return err
	}
	k.Notifier, err = k.make(ctx)
	return err
}

// memory of a place is what it told before, kept on the bus: whichever process tells next
// knows it too.
type memory struct {
	*bus.Bus
	place string
}

func (m memory) load(ctx context.Context, key string) ([]byte, error) {
	body, _, err := m.Newest(ctx, bus.Told, m.place+"."+key)
	return body, err
}

func (m memory) save(ctx context.Context, key string, value []byte) error {
	sum := sha256.Sum256(value)
	return m.PublishNewer(ctx, bus.Told, m.place+"."+key, fmt.Sprintf("%s-%s-%x", m.place, key, sum[:8]), value, func([]byte) bool { return false })
}

// called is what people call this cluster: as they say, or else its uid's beginning.
func (s *Service) called(ctx context.Context, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	id, err := live.ID(ctx, s.client)
	return id[:min(len(id), 8)], err
}

// tellPeople has every sink tell what the bus carries, for as long as this process leads.
func (s *Service) tellPeople(ctx context.Context) error {
	all, err := s.sinks()
	if err != nil {
		return err
	}
	for _, k := range all { // before anything is told: what of the configuration cannot be ends the process
		if secrets.Missing(k.file) == nil {
			if k.Notifier, err = k.make(ctx); err != nil {
				return err
			}
		}
	}
	s.ready.sinks.Store(&all)
	if !s.does("diagnose") {
		s.ready.set() // there is nothing that it would have to read first
	}
	p, ctx := parts.New(ctx)
	for _, k := range all {
		p.Begin(k.name, func() error {
			if k.Notifier == nil {
				if err := k.made(ctx); err != nil && ctx.Err() == nil {
					return err
				}
			}
			for {
				term, err := s.lead.Wait(ctx)
				if err != nil {
					return nil // it ends
				}
				if err := k.tell(term); err != nil {
					return err
				}
			}
		})
	}
	return p.Wait()
}

// tell reads on where this sink was, whichever process it was in, until the term ends.
func (k *sink) tell(term context.Context) error {
	if c, ok := k.Notifier.(checker); ok && k.until(term, k.noted(c.Check)) != nil {
		return nil // the term has ended
	}
	p, ctx := parts.New(term)
	for _, t := range []bus.Topic{bus.Diagnoses, bus.Outcomes, bus.Incidents} {
		p.Begin(k.name, func() error { return k.bus.Consume(ctx, t, k.name, k.news(t)) })
	}
	p.Begin(k.name, func() error { return k.follow(ctx) })
	if !k.does("diagnose") { // another process hears who sees to it
		p.Begin(k.name, func() error { return k.takenNews(ctx) })
	}
	if pages, ok := k.Notifier.(pages); ok {
		p.Begin(k.name, func() error { return k.again(ctx, pages) })
	}
	return p.Wait()
}

// checker is a place of which more can be known, before there is anything to tell, than that
// its configuration could be meant.
type checker interface {
	// Check says what is wrong and where to mend it.
	Check(context.Context) error
}

// noted tries, and notes what came of it.
func (k *sink) noted(try func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := try(ctx)
		if ctx.Err() == nil {
			k.note(ctx, err)
		}
		return err
	}
}

// news is what comes of a topic: that something of an incident has changed.
func (k *sink) news(t bus.Topic) bus.Handler {
	return func(ctx context.Context, key string, body []byte) error {
		if t == bus.Incidents {
			var i incident.Incident
			if err := json.Unmarshal(body, &i); err != nil || !i.Resolved {
				return err // its diagnosis is told
			}
		}
		id, _, _ := strings.Cut(key, ".")
		return k.until(ctx, func(ctx context.Context) error { return k.once(ctx, id) })
	}
}

// until tries until it is done, the place refuses it, or ctx ends.
func (k *sink) until(ctx context.Context, try func(context.Context) error) error {
	pauses := backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(0), backoff.WithInitialInterval(time.Second), backoff.WithMaxInterval(time.Minute))
	heard := notice.Heard(ctx, func(err error) { k.note(ctx, err) })
	for {
		err := try(heard)
		if err == nil || errors.Is(err, notice.ErrRefused) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

// once tells what is known of an incident now.
func (k *sink) once(ctx context.Context, id string) error {
	k.turn.Lock()
	defer k.turn.Unlock()
	began := k.now()
	p, err := k.proposal(ctx, id)
	sent := k.sent()
	if err == nil {
		err = k.routed(ctx, p)
		k.toldOf(p, began, err)
	}
	if ctx.Err() == nil && (err != nil || sent < 0 || k.sent() > sent) {
		k.note(ctx, err)
	}
	return err
}

// note counts what failed, and says once that it did, and once that it does no more.
func (k *sink) note(ctx context.Context, err error) {
	if errors.Is(err, notice.ErrRefused) {
		k.errors.Inc()
		k.mu.Lock()
		k.trouble = nil // nothing is wrong with the place: the bus parks it, and says why
		k.mu.Unlock()
		return
	}
	k.mu.Lock()
	was, since := k.trouble, k.since
	k.trouble = err
	if err != nil && was == nil {
		k.since = k.now()
	}
	k.mu.Unlock()
	switch {
	case err != nil:
		k.errors.Inc()
		if was == nil || was.Error() != err.Error() {
			k.logger.ErrorContext(ctx, "people are not told, it is tried again", "sink", k.name, "error", err)
		}
	case was != nil:
		k.logger.InfoContext(ctx, "people are told again", "sink", k.name, "after", k.now().Sub(since).Round(time.Second).String())
	}
}

// standing says for /readyz since when people are not told, and why; empty when they are.
func (k *sink) standing() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trouble == nil {
		return ""
	}
	return fmt.Sprintf("%s is not told since %s: %v", k.name, k.since.UTC().Format(time.RFC3339), k.trouble)
}

// proposal is all that is known of an incident now.
func (k *sink) proposal(ctx context.Context, id string) (notice.Proposal, error) {
	if id == breakerID {
		return k.breaker(ctx)
	}
	p := notice.Proposal{Incident: id}
	body, at, err := k.bus.Newest(ctx, bus.Diagnoses, id)
	if err != nil {
		return p, err
	}
	var d diagnosis.Summary
	if body != nil && json.Unmarshal(body, &d) == nil {
		p.Finding, p.Read = &d, at
		if p.Taken, err = k.takenOf(ctx, id, d.Pods.Since); err != nil {
			return p, err
		}
		if p.Snoozed, err = k.snoozedOf(ctx, id); err != nil {
			return p, err
		}
	}
	body, at, err = k.bus.Newest(ctx, bus.Incidents, id)
	if err != nil {
		return p, err
	}
	var i incident.Incident
	if body != nil && json.Unmarshal(body, &i) == nil && i.Resolved {
		p.Resolved = at
	}
	plans := map[string]notice.Notice{}
	err = k.bus.KeptBelow(ctx, bus.Outcomes, id, func(body []byte) error {
		var n notice.Notice
		if json.Unmarshal(body, &n) == nil {
			plans[n.Plan] = n
		}
		return nil
	})
	k.mu.Lock()
	for name, n := range k.plans {
		if ended, known := plans[name]; n.Incident == id && (!known || ended.Since.Before(n.Since)) {
			plans[name] = n
		}
	}
	k.mu.Unlock()
	p.Plans = slices.SortedFunc(maps.Values(plans), func(a, b notice.Notice) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Plan, b.Plan)) })
	if err != nil {
		return p, err
	}
	if _, ok := k.Notifier.(pages); ok {
		k.release(ctx, &p)
	}
	if n := p.Plan(); n != nil {
		kept, err := k.approved(ctx, n.Plan)
		if err != nil {
			return p, err
		}
		p.Keep(kept)
	}
	k.quote(ctx, &p)
	return p, k.word(ctx, &p)
}

// followEvery is how often plans are looked at: people see a step soon after it began.
const followEvery = 2 * time.Second

// follow tells of plans that are recorded, decided on and carried out; the bus has their
// ends alone. What cannot be read is not told, and is looked at again.
func (k *sink) follow(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		k.look(ctx)
		k.snoozes(ctx)
		k.tellWanted(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (k *sink) look(ctx context.Context) {
	plans, err := plan.Store{Dynamic: k.custom}.List(ctx)
	if err != nil {
		return
	}
	there := map[string]bool{}
	for i := range plans {
		if rem := &plans[i]; !rem.Newer() {
			there[rem.Name] = true
			k.under(ctx, executor.NoticeOf(rem))
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.plans, func(name string, _ notice.Notice) bool { return !there[name] })
}

// under tells where a plan stands, if that is news; what fails is tried at the next look.
func (k *sink) under(ctx context.Context, n notice.Notice) {
	k.mu.Lock()
	before, known := k.plans[n.Plan]
	k.plans[n.Plan] = n
	k.mu.Unlock()
	if known && before.What == n.What && before.Step == n.Step && before.Since.Equal(n.Since) {
		return
	}
	if k.once(ctx, n.Incident) != nil {
		k.mu.Lock()
		delete(k.plans, n.Plan)
		k.mu.Unlock()
	}
}
