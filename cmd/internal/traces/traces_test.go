package traces

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What two processes tell of one wait is one trace: the parts hang on the span that says when it
// was found, steps on their plan, and what failed says why.
func TestOneTraceAWait(t *testing.T) {
	var bodies []request
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var got request
		if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &got) != nil || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s %s %v", r.Method, r.URL, body, err)
		}
		bodies = append(bodies, got)
	}))
	defer collector.Close()
	since := time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)
	w, other := Wait{"gpu-1", since}, Wait{"gpu-1", since.Add(time.Hour)}
	of := func(tell func(*Teller)) {
		teller := New(Options{URL: collector.URL + "/v1/traces", Client: collector.Client(), Version: "v1", Cluster: "uid"})
		tell(teller)
		if err := teller.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	of(func(teller *Teller) {
		teller.Found(w, since.Add(2*time.Second), map[string]string{"unpend.cause": "MIGFull"})
		teller.Did(w, "tell slack", since.Add(2*time.Second), since.Add(3*time.Second), errors.New("429"), nil)
		teller.Did(other, "diagnose", since.Add(time.Hour), since.Add(time.Hour+time.Second), nil, nil)
	})
	of(func(teller *Teller) {
		teller.Plan(w, "carry out", []Step{{"0/cordon", since.Add(10 * time.Second), since.Add(11 * time.Second), ""}, {"0/evict/ml/a", since.Add(11 * time.Second), time.Time{}, "a budget says no"}}, errors.New("taken back"), nil)
	})
	names := map[string]string{} // of spans, by their ids
	var got []string
	traces := map[string]bool{}
	for _, b := range bodies {
		for _, s := range b.ResourceSpans[0].ScopeSpans[0].Spans {
			names[s.SpanID] = s.Name
		}
	}
	for _, b := range bodies {
		if first := b.ResourceSpans[0].Resource.Attributes; !slices.ContainsFunc(first, func(p pair) bool { return p.Key == "k8s.cluster.uid" && p.Value.String == "uid" }) {
			t.Errorf("the cluster is not told: %v", first)
		}
		for _, s := range b.ResourceSpans[0].ScopeSpans[0].Spans {
			if s.Name != "diagnose" { // of another wait
				traces[s.TraceID] = true
			} else if traces[s.TraceID] {
				t.Error("two waits are one trace")
			}
			got = append(got, strings.TrimSpace(names[s.Parent]+" > "+s.Name+" "+s.Status.Message))
		}
	}
	slices.Sort(got)
	want := []string{"> diagnose", "> found", "carry out > 0/cordon", "carry out > 0/evict/ml/a a budget says no", "found > carry out taken back", "found > tell slack 429"}
	if diff := cmp.Diff(want, got); diff != "" || len(traces) != 1 {
		t.Errorf("%d traces, %s", len(traces), diff)
	}
	id, span, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(w.Parent(), "00-"), "-01"), "-")
	if !traces[id] || names[span] != "found" {
		t.Errorf("%s is no parent in %v, whose first spans are %v", w.Parent(), traces, names)
	}
}

// Nobody is told where nobody is to be, and a collector that is away ends nothing.
func TestNobodyIsTold(t *testing.T) {
	var none *Teller
	none.Found(Wait{}, time.Now(), nil)
	none.Did(Wait{}, "x", time.Now(), time.Now(), nil, nil)
	none.Plan(Wait{}, "x", []Step{{}}, nil, nil)
	if err := none.Close(t.Context()); err != nil {
		t.Error(err)
	}
	away := New(Options{URL: "http://127.0.0.1:1/v1/traces", Client: http.DefaultClient})
	away.Did(Wait{"gpu-1", time.Now()}, "x", time.Now(), time.Now(), nil, nil)
	_ = away.Close(t.Context())
}
