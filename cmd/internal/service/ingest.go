package service

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/slack-go/slack/slackevents"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/jira"
	"github.com/unpend/unpend/knowledge/slack"
	"github.com/unpend/unpend/remediate/outbound"
	"github.com/unpend/unpend/remediate/plan"
)

const (
	// jiraAnswers is how long one answer may take, and jiraAnswer how large it may be: a page of
	// tickets with all their texts.
	jiraAnswers, jiraAnswer = time.Minute, 64 << 20
	// soon is when a source is asked again that did not answer.
	soon = 5 * time.Minute
)

// ingest reads what the team says in Slack and Jira, for as long as this process leads, and
// hands it to all.
type ingest struct {
	*Service
	read    *prometheus.GaugeVec
	changes *prometheus.CounterVec
	skipped *prometheus.CounterVec
	failed  *prometheus.CounterVec
}

func newIngest(s *Service) (*ingest, error) {
	i := &ingest{s,
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "unpend_knowledge_read_timestamp_seconds", Help: "When a source was read to its end last."}, []string{"source"}),
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_knowledge_changes_total", Help: "Documents that came, changed or went, by source."}, []string{"source", "what"}),
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_knowledge_skipped_total", Help: "What was left out of a source, by the reason."}, []string{"source", "reason"}),
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_knowledge_failures_total", Help: "Readings of a source that did not come to their end; it is tried again."}, []string{"source"})}
	documents := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "unpend_knowledge_documents", Help: "Documents that a diagnosis may quote, in this process."}, func() float64 { return float64(s.shelf.index.Len()) })
	for _, c := range []prometheus.Collector{i.read, i.changes, i.skipped, i.failed, documents} {
		if err := s.registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return i, nil
}

// learn has this process know what is read from Slack and Jira, and, where it is one that has
// to do with them, read it when it leads.
func (s *Service) learn(ctx context.Context, p parts) error {
	i, err := newIngest(s)
	if err != nil {
		return err
	}
	if s.config.Knowledge.shared() {
		p.begin("stock knowledge", func() error { return s.stock(ctx) })
	} else {
		close(s.shelf.full)
	}
	if s.does("diagnose") || s.config.Knowledge.shared() {
		p.begin("read knowledge", func() error { return i.run(ctx) })
	}
	if s.shelf.meaning != nil {
		p.begin("learn what documents mean", func() error { return s.shelf.meaning.learn(ctx) })
	}
	if file := s.config.Knowledge.Slack.AppTokenFile; file != "" && s.does("notify") {
		p.begin("hear knowledge", func() error {
			return s.whenThere(ctx, "what is new in Slack is not heard", s.hearKnowledge, file)
		})
	}
	return nil
}

// run begins when this process has all that another one has read.
func (i *ingest) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-i.shelf.full:
	}
	for {
		term, err := i.lead.wait(ctx)
		if err != nil {
			return nil // it ends
		}
		if err := i.term(term); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// term reads until another process does.
func (i *ingest) term(term context.Context) error {
	p, ctx := newParts(term)
	if i.config.Knowledge.shared() {
		if err := i.restock(ctx); err != nil && ctx.Err() == nil {
			i.logger.WarnContext(ctx, "the bus is not told what it lacks of what the team has said", "error", err)
		}
	}
	c, now := i.config.Knowledge, &slackNow{make: i.slackAPI}
	if i.does("diagnose") { // who may read what became of plans
		p.begin("read outcomes", func() error { return i.outcomes(ctx) })
	}
	if !c.shared() || !i.does("notify") {
		return p.Wait()
	}
	p.begin("read Slack", func() error {
		return i.source(ctx, "slack", orElse(c.Slack.Every, slackEvery), c.Slack.given(), now.renewed)
	})
	p.begin("read Jira", func() error {
		return i.source(ctx, "jira", orElse(c.Jira.Every, jiraEvery), c.Jira.given(), i.jiraAPI)
	})
	if c.Slack.given() {
		p.begin("read what is new in Slack", func() error {
			return i.bus.Consume(ctx, bus.Heard, "knowledge", func(ctx context.Context, _ string, body []byte) error { return i.news(ctx, now, body) })
		})
	}
	return p.Wait()
}

// restock hands to all what this process has kept and the bus has lost: a source is not read
// again from its beginning.
func (i *ingest) restock(ctx context.Context) error {
	there, err := i.bus.Keys(ctx, bus.Documents)
	if err != nil {
		return err
	}
	return i.shelf.library.Changes(ctx, []string{"slack", "jira", outcome}, func(c knowledge.Change) error {
		if there[c.Key()] {
			return nil
		}
		return i.hand(ctx, c)
	})
}

// source reads one again and again. What was read of one that is not configured any more is
// taken out, once.
func (i *ingest) source(ctx context.Context, name string, every time.Duration, given bool, open func() (knowledge.Source, error)) error {
	if !given {
		i.once(ctx, name, func() (knowledge.Source, error) { return nobody(name), nil })
		return nil
	}
	for ctx.Err() == nil {
		pause := every
		if !i.once(ctx, name, open) {
			pause = min(pause, soon)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// outcomesEvery is how often it is looked for plans that have ended: their documents outlive them.
const outcomesEvery = time.Minute

// outcomes reads what became of plans.
func (i *ingest) outcomes(ctx context.Context) error {
	return i.source(ctx, outcome, outcomesEvery, true, func() (knowledge.Source, error) {
		return knowledge.Outcomes(plan.Store{Dynamic: i.custom}.Outcomes), nil
	})
}

// nobody is a source of which nothing may be read.
type nobody string

// Read implements knowledge.Source.
func (n nobody) Read(ctx context.Context, to *knowledge.Intake) ([]knowledge.Whole, error) {
	return nil, to.Only(ctx, string(n), nil)
}

// once reads a source, and says whether it came to its end.
func (i *ingest) once(ctx context.Context, name string, open func() (knowledge.Source, error)) bool {
	source, err := open()
	if err == nil {
		err = i.take(ctx, name, source)
	}
	if err == nil {
		i.read.WithLabelValues(name).SetToCurrentTime()
		return true
	}
	if ctx.Err() == nil {
		i.failed.WithLabelValues(name).Inc()
		i.logger.ErrorContext(ctx, "what the team has said cannot be read to its end, it is tried again", "source", name, "error", err)
	}
	return false
}

// take reads a source, hands on what changes, and tells what came of it.
func (i *ingest) take(ctx context.Context, name string, source knowledge.Source) error {
	var last *knowledge.Change
	done, err := i.shelf.library.ImportThrough(ctx, source, name, name, time.Now(), func(ctx context.Context, c knowledge.Change) error {
		last = &c
		return i.hand(ctx, c)
	})
	if last != nil {
		i.settle(ctx, *last)
	}
	for what, n := range map[string]int{"added": done.Added, "changed": done.Changed, "removed": done.Removed} {
		i.changes.WithLabelValues(name, what).Add(float64(n))
	}
	for why, n := range done.Skipped {
		i.skipped.WithLabelValues(name, why).Add(float64(n))
	}
	if done.Added+done.Changed+done.Removed > 0 {
		i.logger.InfoContext(ctx, "what the team has said was read", "source", name, "added", done.Added, "changed", done.Changed, "removed", done.Removed)
	}
	return err
}

// settled is how long it is waited for what was handed on to come back.
const settled = 10 * time.Second

// settle waits until this process has what it handed on: what is read next is compared with
// it. Where that does not come, a comparison is off by that, until the next.
func (i *ingest) settle(ctx context.Context, last knowledge.Change) {
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if there, err := i.shelf.library.Holds(last); there || err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// news reads again what an event was about.
func (i *ingest) news(ctx context.Context, now *slackNow, body []byte) error {
	var n slack.News
	if err := json.Unmarshal(body, &n); err != nil {
		return fmt.Errorf("read news of Slack: %w", err)
	}
	a, err := now.get()
	if err != nil {
		return err
	}
	return i.take(ctx, "slack", a.Of(n))
}

// slackNow is the API as it was read last: its token may be another one later.
type slackNow struct {
	make func() (*slack.API, error)

	mu  sync.Mutex
	api *slack.API
}

func (n *slackNow) renewed() (knowledge.Source, error) {
	a, err := n.make()
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.api = a
	return a, nil
}

func (n *slackNow) get() (*slack.API, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.api != nil {
		return n.api, nil
	}
	var err error
	n.api, err = n.make()
	return n.api, err
}

func (i *ingest) slackAPI() (*slack.API, error) {
	c := i.config.Knowledge.Slack
	token, err := secret("knowledge.slack.tokenFile", c.TokenFile)
	if err != nil {
		return nil, err
	}
	return slack.NewAPI(slack.APIOptions{Token: token, Channels: c.Channels, Private: c.PrivateChannels, Only: true, URL: c.url, Say: func(text string) { i.logger.Info(text) }})
}

func (i *ingest) jiraAPI() (knowledge.Source, error) {
	c := i.config.Knowledge.Jira
	token, err := secret("knowledge.jira.tokenFile", c.TokenFile)
	if err != nil {
		return nil, err
	}
	client, err := outbound.New(outbound.Options{Allow: i.config.Outbound.Allow, Secrets: []string{token}, Timeout: jiraAnswers, MaxAnswer: jiraAnswer})
	if err != nil {
		return nil, err
	}
	if _, err := client.Parse("knowledge.jira.url", c.URL); err != nil {
		return nil, err
	}
	o := c.options()
	o.Token, o.HTTP, o.Forbidden = token, client.HTTP(), outbound.ErrForbidden
	return jira.NewAPI(o)
}

// overhears notes what an event of Slack's is about, for the process that reads Slack: an event
// that cannot be noted is not acknowledged, and comes again.
func overhears(open func(context.Context) (*bus.Bus, error)) func(context.Context, slackevents.EventsAPIEvent) error {
	return func(ctx context.Context, e slackevents.EventsAPIEvent) error {
		n, ok := slack.Heard(e)
		if !ok {
			return nil
		}
		return note(ctx, open, n)
	}
}

func note(ctx context.Context, open func(context.Context) (*bus.Bus, error), n slack.News) error {
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("note news of Slack: %w", err)
	}
	b, err := open(ctx)
	if err != nil {
		return err
	}
	// Each says that something is new, also where it is said twice.
	return b.Publish(ctx, bus.Heard, n.Key(), fmt.Sprintf("%s-%d", n.Key(), time.Now().UnixNano()), body)
}

// hearKnowledge hears events by a connection of its own, where the app is another one than
// that which people click in.
func (s *Service) hearKnowledge(ctx context.Context) error {
	token, err := secret("knowledge.slack.appTokenFile", s.config.Knowledge.Slack.AppTokenFile)
	if err != nil {
		return err
	}
	slack.Listen(ctx, token, s.config.Knowledge.Slack.url, func(ctx context.Context, n slack.News) error { return note(ctx, s.late.get, n) }, func(err error) {
		s.logger.WarnContext(ctx, "what is new in Slack is not heard, it is tried again", "error", err)
	})
	return nil
}
