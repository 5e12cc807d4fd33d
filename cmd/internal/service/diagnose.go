package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/library"
	"github.com/unpend/unpend/cmd/internal/parts"
	"github.com/unpend/unpend/cmd/internal/service/analyst"
	"github.com/unpend/unpend/cmd/internal/service/lead"
	"github.com/unpend/unpend/cmd/internal/traces"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/capacity"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/fairqueue"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// railsFor is how long the service goes by guard-rails that it has read: a storm of
// incidents must not become one of questions about them.
const railsFor = 5 * time.Second

// diagnose explains every incident on the bus: when it is news, and again when what its
// diagnosis relied on has changed.
func (s *Service) diagnose(ctx context.Context) error {
	f, err := live.Follow(ctx, s.client, s.custom, time.Now, s.owners)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.countFailures(f); err != nil {
		return err
	}
	a, err := analyst.New(f, s.logger, s.registry)
	if err != nil {
		return err
	}
	defer a.Close()
	if s.library != nil {
		a.Opts.Search = func(ctx context.Context, words []string) ([]knowledge.Hit, error) {
			return s.library.Quote(ctx, library.Everywhere, words, 2*mostQuoted) // of outcomes some stand there already
		}
	}
	a.Opts.Measure, a.Opts.Outcomes = s.measure, analyst.Lasting(plan.Store{Dynamic: s.custom}.Outcomes)
	a.Opts.Guard = executor.GuardOf(executor.Deps{Client: s.client, Dynamic: s.custom, Owners: s.owners, Now: time.Now}, s.config.Namespace(), railsFor)
	gauges := capacity.NewGauges(time.Now)
	if err := s.registry.Register(gauges); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if err := errors.Join(f.OnGeometry(gauges.Set, gauges.Delete), f.OnNode(gauges.SetNode, gauges.DeleteNode)); err != nil {
		return err
	}
	if s.page != nil {
		if err := f.OnGeometry(s.page.SetGeometry, s.page.DeleteGeometry); err != nil {
			return err
		}
	}
	p := &publisher{Service: s, analyst: a, last: map[string]said{}, earlier: map[string]said{},
		gaveUp: prometheus.NewCounter(prometheus.CounterOpts{Name: "unpend_diagnoses_failed_total", Help: "Incidents that could not be diagnosed, or whose diagnosis could not be published."})}
	if err := s.registry.Register(p.gaveUp); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	q, err := fairqueue.New(fairqueue.Options{Diagnose: p.diagnose, GiveUp: p.giveUp, Registerer: s.registry, Now: time.Now})
	if err != nil {
		return err
	}
	if err := f.OnChange(q.Changed); err != nil {
		return err
	}
	s.ready.stuck(q.Stuck)
	s.ready.set()
	together, ctx := parts.New(ctx)
	if s.config.Kubectl.Annotations {
		together.Begin("answer people", func() error { return s.answerPeople(ctx, f, a.Opts) })
	}
	if s.library != nil {
		together.Begin("answer searches", func() error { return s.library.Answer(ctx) })
	}
	together.Begin("diagnose in turn", func() error {
		q.Run(ctx)
		return nil
	})
	if s.config.Hooks.Listen != "" {
		c := s.config.Hooks
		together.Begin("hooks", func() error {
			return s.whenThere(ctx, "hooks are not listened to", func(ctx context.Context) error { return s.hooks(ctx, q) }, c.TokenFile, c.SecretFile, c.PagerDutySecretFile)
		})
	}
	together.Begin("follow incidents", func() error {
		for {
			term, err := s.lead.Wait(ctx)
			if err != nil {
				return nil // it ends
			}
			p.follow(term, func(i incident.Incident) {
				if i.Resolved {
					p.forget(i.ID)
				} else {
					gauges.Asked(i)
				}
				q.Put(i)
			})
		}
	})
	return together.Wait()
}

// countFailures counts watches that fail, and tells of one for each reason: what is diagnosed
// grows old with them.
func (s *Service) countFailures(f *live.Follower) error {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_watch_failures_total", Help: "Attempts to go on following a kind that failed, by the API server's reason."}, []string{"kind", "reason"})
	if err := s.registry.Register(failures); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	told := lead.NewSeldom(s.now)
	f.OnFailure(func(kind, reason string) {
		failures.WithLabelValues(kind, reason).Inc()
		if told.Due(reason) {
			s.logger.Warn("a kind cannot be followed: what was read of it last stands; unpend_watch_failures_total has every kind", "kind", kind, "reason", reason)
		}
	})
	return nil
}

// follow hands over the incidents that are true, and each that comes, for as long as this
// process is the one that diagnoses.
func (p *publisher) follow(term context.Context, take func(incident.Incident)) {
	p.bus.Follow(term, bus.Incidents, func(key string, body []byte) {
		var i incident.Incident
		if err := json.Unmarshal(body, &i); err != nil {
			p.park(term, key, body, 1, fmt.Errorf("read an incident: %w", err))
			return
		}
		take(i)
	}, func(err error) {
		p.logger.WarnContext(term, "incidents are followed again from the newest of each", "error", err)
	})
}

// publisher hands diagnoses on, each once.
type publisher struct {
	*Service
	analyst *analyst.Analyst
	term    context.Context // in which last was said
	gaveUp  prometheus.Counter

	mu sync.Mutex
	// last and earlier are what this process has said of incidents that wait: in its term, and
	// in those before.
	last, earlier map[string]said
	// looks is the incident that is being diagnosed, until it is over.
	looks string

	recorded recorded
}

// forget is told of incidents that are over.
func (p *publisher) forget(incident string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, incident)
	delete(p.earlier, incident)
	if p.looks == incident {
		p.looks = ""
	}
}

// look begins to look at an incident: what was said of it in this term, if anything, and by
// this process in those before, when another may have led since.
func (p *publisher) look(incident string) (last, earlier said, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks = incident
	last, known = p.last[incident]
	return last, p.earlier[incident], known
}

// over says whether what is looked at has ended meanwhile: the copy of the cluster that it
// was read from did not know that yet, as after an outage of the API server.
func (p *publisher) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looks == ""
}

// note keeps what was said of an incident, unless it is over.
func (p *publisher) note(incident string, now said) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looks == incident {
		p.last[incident] = now
	}
}

func (p *publisher) begin(term context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.term = term
	maps.Copy(p.earlier, p.last)
	clear(p.last) // another may have said something else
}

// said is what was published last of an incident.
type said struct {
	substance [32]byte
	waiting   int
}

// diagnose explains an incident and publishes what was not said before.
func (p *publisher) diagnose(ctx context.Context, i incident.Incident, read time.Time) (news bool, err error) {
	if ctx = p.lead.Leads(ctx); ctx == nil {
		return true, nil // another process does; the next term begins with all incidents
	}
	if ctx != p.term {
		p.begin(ctx)
	}
	began := p.now()
	last, earlier, known := p.look(i.ID)
	d, waits, err := p.analyst.Explain(ctx, i, read)
	if err != nil {
		return false, err
	}
	if !waits {
		p.forget(i.ID)
		return false, nil
	}
	substance, err := d.Substance()
	if err != nil {
		return false, err
	}
	now := said{substance, d.Pods.Waiting}
	if known && last == now || p.over() || p.analyst.Behind(ctx, p.client, d) {
		return false, nil
	}
	if !known {
		last = earlier
	}
	news, err = p.publish(ctx, d, last, now)
	if err != nil {
		return false, err
	}
	p.note(i.ID, now)
	p.found(traces.Wait{Incident: d.Incident, Since: d.Pods.Since}, began, last == (said{}), string(d.Causes[0].ID), d.Pods.Waiting)
	if news {
		p.analyst.Causes.WithLabelValues(string(d.Causes[0].ID)).Inc()
	}
	return news, nil
}

// publish hands a diagnosis on, unless it is on the bus, and prints it, unless that is the
// newest line that this process has printed of its incident. It says whether its substance is
// new to both.
func (p *publisher) publish(ctx context.Context, d diagnosis.Diagnosis, last, now said) (news bool, err error) {
	body, err := d.Message()
	if err != nil {
		return false, err
	}
	of := fmt.Sprintf("diagnosis-%s-%x", d.Incident, now.substance[:8])
	known := last.substance == now.substance
	if !known { // by another process, of as many pods or not
		if err := p.insist(ctx, func() (err error) {
			known, err = p.bus.Said(ctx, bus.Diagnoses, d.Incident, of)
			return err
		}); err != nil {
			return false, err
		}
	}
	var before bool
	if err := p.insist(ctx, func() (err error) {
		before, err = p.hand(ctx, d, fmt.Sprintf("%s-%d", of, now.waiting), body)
		return err
	}); err != nil {
		return false, err
	}
	if err := p.bus.Settled(ctx, bus.Incidents, d.Incident); err != nil {
		p.logger.WarnContext(ctx, "an incident that was given up is diagnosed, and its dead letter is not forgotten", "incident", d.Incident, "error", err)
	}
	if !before || last != now {
		_, err = fmt.Fprintln(p.out, string(body))
	}
	return !known, err
}

// hand hands a diagnosis on, unless the bus has it: of an earlier term, or of another process,
// words and ages may differ.
func (p *publisher) hand(ctx context.Context, d diagnosis.Diagnosis, id string, body []byte) (before bool, err error) {
	if before, err = p.bus.Said(ctx, bus.Diagnoses, d.Incident, id); err != nil || before {
		return before, err
	}
	if err := p.keep(ctx, d); err != nil {
		return false, err
	}
	return false, p.bus.PublishNewer(bus.Traced(ctx, traces.Wait{Incident: d.Incident, Since: d.Pods.Since}.Parent()), bus.Diagnoses, d.Incident, id, body, func([]byte) bool { return false })
}

// insist does something again for as long as no message can be published: nothing is wrong
// with this one, and no other would fare better.
func (p *publisher) insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !p.away() {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// away says whether no message can be published, whatever it holds.
func (p *publisher) away() bool {
	trouble, is := errors.AsType[*bus.Trouble](p.bus.Healthy())
	return is && trouble.Reason != bus.TooLarge
}

const tries = 3 // of fairqueue

func (p *publisher) giveUp(ctx context.Context, i incident.Incident, why error) {
	p.gaveUp.Inc()
	_, body, err := i.Message()
	if err != nil {
		body = []byte(i.ID)
	}
	p.park(ctx, i.ID, body, tries, why)
}

func (p *publisher) park(ctx context.Context, key string, body []byte, tried uint64, why error) {
	if err := p.bus.Park(ctx, bus.Incidents, key, body, tried, why); err != nil {
		p.logger.ErrorContext(ctx, "an incident is given up until there is news of it, and its dead letter is not kept", "incident", key, "why", why, "error", err)
	}
}
