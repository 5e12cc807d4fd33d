// Package traces tells an OpenTelemetry collector what was done about each incident: one trace
// a wait, whichever process did it. The ids of a trace and of its first span follow from the
// incident and since when it waits, so that the processes need not tell each other.
package traces

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Wait is one wait of an incident.
type Wait struct {
	Incident string
	Since    time.Time // whole seconds count
}

// Options of a Teller.
type Options struct {
	// URL that spans are posted to, as OTLP over HTTP: http://collector:4318/v1/traces.
	URL     string
	Client  *http.Client
	Version string
	Cluster string // the uid of kube-system
}

// Teller tells of spans; nil tells nobody.
type Teller struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New makes a Teller. It speaks to nobody yet: a collector that is away costs spans, and nothing
// else.
func New(o Options) *Teller {
	return with(sdktrace.NewBatchSpanProcessor(post{o.URL, o.Client}), o)
}

func with(p sdktrace.SpanProcessor, o Options) *Teller {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p), sdktrace.WithIDGenerator(ids{}), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "unpend"), attribute.String("service.version", o.Version), attribute.String("k8s.cluster.uid", o.Cluster))))
	return &Teller{provider, provider.Tracer("github.com/unpend/unpend")}
}

// Close sends what is left.
func (t *Teller) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// Found tells a wait's first span: from its oldest pod's wait until it was explained.
func (t *Teller) Found(w Wait, at time.Time, about map[string]string) {
	if t == nil {
		return
	}
	_, span := t.tracer.Start(context.WithValue(context.Background(), first{}, w), "found", trace.WithNewRoot(), trace.WithTimestamp(w.Since), told(w, about))
	span.End(trace.WithTimestamp(at))
}

// Did tells of something that was done about a wait; what it came to is an error or none.
func (t *Teller) Did(w Wait, what string, began, ended time.Time, failed error, about map[string]string) {
	t.step(within(w), w, what, began, ended, failed, about)
}

// Step is a part of what was done.
type Step struct {
	Name         string
	Began, Ended time.Time // zero: it has not ended
	Failed       string
}

// Plan tells of a plan that has ended, and of its steps.
func (t *Teller) Plan(w Wait, what string, steps []Step, failed error, about map[string]string) {
	if t == nil || len(steps) == 0 {
		return
	}
	ended := steps[0].Began
	for _, s := range steps {
		if s.Ended.After(ended) {
			ended = s.Ended
		}
	}
	ctx := t.step(within(w), w, what, steps[0].Began, ended, failed, about)
	for _, s := range steps {
		var no error
		if s.Failed != "" {
			no = fmt.Errorf("%s", s.Failed)
		}
		if s.Ended.IsZero() {
			s.Ended = ended
		}
		t.step(ctx, w, s.Name, s.Began, s.Ended, no, nil)
	}
}

func (t *Teller) step(ctx context.Context, w Wait, what string, began, ended time.Time, failed error, about map[string]string) context.Context {
	if t == nil {
		return ctx
	}
	ctx, span := t.tracer.Start(ctx, what, trace.WithTimestamp(began), told(w, about))
	if failed != nil {
		span.SetStatus(codes.Error, failed.Error())
	}
	span.End(trace.WithTimestamp(ended))
	return ctx
}

func told(w Wait, about map[string]string) trace.SpanStartOption {
	all := []attribute.KeyValue{attribute.String("unpend.incident", w.Incident)}
	for k, v := range about {
		all = append(all, attribute.String(k, v))
	}
	return trace.WithAttributes(all...)
}

// within has what is begun by it be a child of the wait's first span.
func within(w Wait) context.Context {
	id, span := w.ids()
	return trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true}))
}

// Parent is the wait's first span as W3C's traceparent, for who goes on with the trace elsewhere.
func (w Wait) Parent() string {
	id, span := w.ids()
	return "00-" + id.String() + "-" + span.String() + "-01"
}

// ids of a wait's trace and of its first span.
func (w Wait) ids() (id trace.TraceID, span trace.SpanID) {
	sum := sha256.Sum256([]byte(w.Incident + "/" + w.Since.UTC().Format(time.RFC3339)))
	copy(id[:], sum[:])
	copy(span[:], sum[len(id):])
	return id, span
}

// first in a context is the wait that a root span is the first of.
type first struct{}

// ids gives the first span of a wait its ids, and any other span one at random.
type ids struct{}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if w, ok := ctx.Value(first{}).(Wait); ok {
		return w.ids()
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails
	return id, ids{}.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	_, _ = rand.Read(id[:]) // never fails
	return id
}
