package library

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/parts"
	"github.com/unpend/unpend/knowledge"
)

// soon is when a source is asked again that did not answer.
const soon = 5 * time.Minute

// ingest reads what the team says in Slack and Jira, for as long as this process leads, and
// hands it to all.
type ingest struct {
	*Library
	read    *prometheus.GaugeVec
	changes *prometheus.CounterVec
	skipped *prometheus.CounterVec
	failed  *prometheus.CounterVec
}

func newIngest(l *Library) (*ingest, error) {
	i := &ingest{l,
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "unpend_knowledge_read_timestamp_seconds", Help: "When a source was read to its end last."}, []string{"source"}),
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_knowledge_changes_total", Help: "Documents that came, changed or went, by source."}, []string{"source", "what"}),
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_knowledge_skipped_total", Help: "What was left out of a source, by the reason."}, []string{"source", "reason"}),
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_knowledge_failures_total", Help: "Readings of a source that did not come to their end; it is tried again."}, []string{"source"})}
	documents := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "unpend_knowledge_documents", Help: "Documents that a diagnosis may quote, in this process."}, func() float64 { return float64(l.index.Len()) })
	for _, c := range []prometheus.Collector{i.read, i.changes, i.skipped, i.failed, documents} {
		if err := l.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return i, nil
}

// Run has this process know what is read from Slack and Jira, and, where it is one that has to
// do with them, read it when it leads, until ctx ends. There has to be a library (Keeps).
func (l *Library) Run(ctx context.Context) error {
	i, err := newIngest(l)
	if err != nil {
		return err
	}
	p, ctx := parts.New(ctx)
	if l.Config.Shared() {
		p.Begin("stock knowledge", func() error { return l.stock(ctx) })
	} else {
		l.filled.Do(func() { close(l.full) })
	}
	if l.Quotes || l.Config.Shared() {
		p.Begin("read knowledge", func() error { return i.run(ctx) })
	}
	if l.meaning != nil {
		p.Begin("learn what documents mean", func() error { return l.meaning.learn(ctx) })
	}
	return p.Wait()
}

// run begins when this process has all that another one has read.
func (i *ingest) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-i.full:
	}
	for {
		term, err := i.Lead(ctx)
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
	p, ctx := parts.New(term)
	if i.Config.Shared() {
		if err := i.restock(ctx); err != nil && ctx.Err() == nil {
			i.Logger.WarnContext(ctx, "the bus is not told what it lacks of what the team has said", "error", err)
		}
	}
	c, now := i.Config, &slackNow{make: i.slackAPI}
	if i.Quotes { // who may read what became of plans
		p.Begin("read outcomes", func() error { return i.outcomes(ctx) })
	}
	if !c.Shared() || !i.Reads {
		return p.Wait()
	}
	p.Begin("read Slack", func() error {
		return i.source(ctx, "slack", orElse(c.Slack.Every, slackEvery), c.Slack.Given(), now.renewed)
	})
	p.Begin("read Jira", func() error {
		return i.source(ctx, "jira", orElse(c.Jira.Every, jiraEvery), c.Jira.given(), i.jiraAPI)
	})
	if c.Slack.Given() {
		p.Begin("read what is new in Slack", func() error {
			return i.Bus.Consume(ctx, bus.Heard, "knowledge", func(ctx context.Context, _ string, body []byte) error { return i.news(ctx, now, body) })
		})
	}
	return p.Wait()
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
	return i.source(ctx, Outcome, outcomesEvery, true, func() (knowledge.Source, error) { return i.Outcomes, nil })
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
		i.Logger.ErrorContext(ctx, "what the team has said cannot be read to its end, it is tried again", "source", name, "error", err)
	}
	return false
}

// take reads a source, hands on what changes, and tells what came of it.
func (i *ingest) take(ctx context.Context, name string, source knowledge.Source) error {
	var last *knowledge.Change
	done, err := i.kept.ImportThrough(ctx, source, name, name, time.Now(), func(ctx context.Context, c knowledge.Change) error {
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
		i.Logger.InfoContext(ctx, "what the team has said was read", "source", name, "added", done.Added, "changed", done.Changed, "removed", done.Removed)
	}
	return err
}
