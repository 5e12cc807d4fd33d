package idle

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
)

var asked = []diagnosis.Holder{{PodName: diagnosis.PodName{Namespace: "demo", Name: "x"}, Devices: 1, Running: noon.Add(-2 * hour)}}

// A Prometheus that cannot answer is an error that says so, in time; nobody is idle
// by it.
func TestPrometheusThatFails(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	page := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}
	for name, k := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"503":               {page(503, "starting"), "server error: 503"},
		"refused query":     {page(422, `{"status":"error","errorType":"execution","error":"query processing would load too many samples"}`), "too many samples"},
		"401":               {page(401, "who are you"), "client error: 401"},
		"a page":            {page(200, "<html>log in</html>"), "invalid character"},
		"another type":      {page(200, `{"status":"success","data":{"resultType":"vector","result":[]}}`), "answers a range with vector"},
		"a part":            {page(200, `{"status":"success","warnings":["store-2 is down"],"data":{"resultType":"matrix","result":[]}}`), "answers in part only: store-2 is down"},
		"redirect":          {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "redirects to " + strings.TrimPrefix(elsewhere.URL, "http://")},
		"an answer too big": {func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, io.LimitReader(endless{}, 2*maxAnswer)) }, "answers with more than 33554432 bytes"},
		"silence":           {func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() }, "no answer within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(k.serve)
			defer server.Close()
			deadline := 5 * time.Second
			if name == "silence" {
				deadline = 300 * time.Millisecond
			}
			began := time.Now()
			got, err := client(t, Options{Address: server.URL, Deadline: deadline}).Measure(t.Context(), noon, asked)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
			if got != nil || err == nil || !strings.Contains(err.Error(), k.want) || !strings.HasPrefix(err.Error(), "ask Prometheus "+strings.TrimPrefix(server.URL, "http://")) {
				t.Errorf("%v, %v; want %q", got, err, k.want)
			}
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if _, err := client(t, Options{Address: gone.URL}).Measure(t.Context(), noon, asked); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
}

// endless is bytes without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// After a failure nobody waits for the same Prometheus again, for a while; that a
// caller gave up is no failure of it.
func TestFailureIsRemembered(t *testing.T) {
	var requests atomic.Int32
	down := atomic.Bool{}
	down.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		if down.Load() {
			w.WriteHeader(503)
			return
		}
		io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
	}))
	defer server.Close()
	now := noon
	c := client(t, Options{Address: server.URL, Now: func() time.Time { return now }})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Measure(gone, noon, asked); err == nil || requests.Load() != 0 {
		t.Fatalf("%v after %d requests", err, requests.Load())
	}
	_, first := c.Measure(t.Context(), noon, asked)
	sent := requests.Load()
	if first == nil || sent == 0 {
		t.Fatalf("%v after %d requests", first, sent)
	}
	down.Store(false)
	now = now.Add(pause - time.Second)
	if _, err := c.Measure(t.Context(), noon, asked); err == nil || err.Error() != first.Error() || requests.Load() != sent {
		t.Errorf("%v after %d requests; %d were sent before", err, requests.Load(), sent)
	}
	now = now.Add(2 * time.Second)
	if got, err := c.Measure(t.Context(), noon, asked); err != nil || got[asked[0].PodName].Unknown != notSeen {
		t.Errorf("%+v, %v", got, err)
	}
}

// The token is read again for each request, sent to the host that was named, and
// never shown.
func TestToken(t *testing.T) {
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		w.WriteHeader(403)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	for _, token := range []string{"canary-1", "canary-2"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := client(t, Options{Address: server.URL, TokenFile: file}).Measure(t.Context(), noon, asked)
		if err == nil || strings.Contains(err.Error(), "canary") || got.Load() != "Bearer "+token {
			t.Errorf("sent %v, said %v", got.Load(), err)
		}
	}
	_, err := client(t, Options{Address: server.URL, TokenFile: file + "-gone"}).Measure(t.Context(), noon, asked)
	if err == nil || !strings.Contains(err.Error(), "read the token") {
		t.Errorf("without the file: %v", err)
	}
}

// Where nobody holds anything, nobody is asked.
func TestNoHolders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked") }))
	defer server.Close()
	if got, err := client(t, Options{Address: server.URL}).Measure(t.Context(), noon, nil); len(got) != 0 || err != nil {
		t.Error(got, err)
	}
}
