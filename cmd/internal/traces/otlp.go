package traces

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// post sends spans as OTLP in JSON, over HTTP:
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
// OpenTelemetry's own exporter links gRPC and its gateway, and with their templates everything
// that could be called by name: 47 MB of a binary of 82.
type post struct {
	url    string
	client *http.Client
}

type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   attributes   `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []span `json:"spans"`
	}
	attributes struct {
		Attributes []pair `json:"attributes"`
	}
	pair struct {
		Key   string `json:"key"`
		Value struct {
			String string `json:"stringValue"`
		} `json:"value"`
	}
	span struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
		Parent  string `json:"parentSpanId,omitempty"`
		Name    string `json:"name"`
		Kind    int    `json:"kind"`
		Start   string `json:"startTimeUnixNano"`
		End     string `json:"endTimeUnixNano"`
		attributes
		Status status `json:"status"`
	}
	status struct {
		Code    int    `json:"code,omitempty"` // 2: an error
		Message string `json:"message,omitempty"`
	}
)

// kindInternal is SPAN_KIND_INTERNAL.
const kindInternal = 1

// ExportSpans implements sdktrace.SpanExporter.
func (p post) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	of := scopeSpans{}
	of.Scope.Name = spans[0].InstrumentationScope().Name
	for _, s := range spans {
		of.Spans = append(of.Spans, spanOf(s))
	}
	body, err := json.Marshal(request{[]resourceSpans{{pairs(spans[0].Resource().Attributes()), []scopeSpans{of}}}})
	if err != nil {
		return fmt.Errorf("encode traces: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("post traces: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := p.client.Do(r)
	if err != nil {
		return fmt.Errorf("post traces: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection is used again
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("post traces: the collector answers %s", answer.Status)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (post) Shutdown(context.Context) error { return nil }

func spanOf(s sdktrace.ReadOnlySpan) span {
	out := span{TraceID: s.SpanContext().TraceID().String(), SpanID: s.SpanContext().SpanID().String(), Name: s.Name(), Kind: kindInternal,
		Start: nanoseconds(s.StartTime()), End: nanoseconds(s.EndTime()), attributes: pairs(s.Attributes())}
	if s.Parent().HasSpanID() {
		out.Parent = s.Parent().SpanID().String()
	}
	if is := s.Status(); is.Code == codes.Error {
		out.Status = status{2, is.Description}
	}
	return out
}

func pairs(all []attribute.KeyValue) attributes {
	out := attributes{Attributes: []pair{}}
	for _, kv := range all {
		one := pair{Key: string(kv.Key)}
		one.Value.String = kv.Value.String()
		out.Attributes = append(out.Attributes, one)
	}
	return out
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
