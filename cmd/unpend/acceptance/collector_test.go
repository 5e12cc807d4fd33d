package acceptance

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// collector is an OpenTelemetry collector: it keeps the spans that it is told.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []span
}

type span struct {
	TraceID    string `json:"traceId"`
	Name       string `json:"name"`
	Attributes []struct {
		Key   string `json:"key"`
		Value struct {
			String string `json:"stringValue"`
		} `json:"value"`
	} `json:"attributes"`
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var told struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []span `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if err := json.NewDecoder(r.Body).Decode(&told); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, all := range told.ResourceSpans {
			for _, s := range all.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// oneTrace wants what was done about an incident, each by a process of its own, to be one trace.
func (c *collector) oneTrace(t *testing.T, incident string, parts ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	traces := map[string][]string{}
	for _, s := range c.spans {
		for _, a := range s.Attributes {
			if a.Key == "unpend.incident" && a.Value.String == incident {
				traces[s.TraceID] = append(traces[s.TraceID], s.Name)
			}
		}
	}
	for _, names := range traces {
		for _, part := range parts {
			if !slices.Contains(names, part) {
				t.Errorf("%q is no part of the trace, which has %q", part, names)
			}
		}
	}
	if len(traces) != 1 {
		t.Errorf("what was done about %s is %d traces: %v", incident, len(traces), traces)
	}
}
