package outbound_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/outbound"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// trust is trust in a server's certificate, whatever name it is called by.
func trust(s *httptest.Server) *tls.Config {
	if s.Certificate() == nil {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{RootCAs: roots, ServerName: "example.com"}
}

// get asks once.
func get(t *testing.T, c *outbound.Client, address string) error {
	t.Helper()
	u, err := c.Parse("url", address)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), nil)
	must(t, err)
	a, err := c.HTTP().Do(r)
	if err != nil {
		return c.Told("ask", err)
	}
	defer a.Body.Close()
	if err := outbound.Status(a, time.Now()); err != nil {
		return c.Told("ask", err)
	}
	_, err = io.Copy(io.Discard, a.Body)
	return c.Told("ask", err)
}

// What an answer means: done, to be tried again and when, never, or for an operator to mend;
// and no secret is in what is said of it.
func TestAnswers(t *testing.T) {
	clock := notifytest.NewClock()
	for name, tc := range map[string]struct {
		code    int
		header  string // Retry-After
		want    string
		tries   int32
		atLeast time.Duration
	}{
		"done":            {code: 202, want: "<nil>", tries: 1},
		"seconds":         {code: 429, header: "20", want: "<nil>", tries: 2, atLeast: 20 * time.Second},
		"a date":          {code: 503, header: "DATE", want: "<nil>", tries: 2, atLeast: 39 * time.Second},
		"too long":        {code: 503, header: "3600", want: "tried 1 times: tell: the answer is 503 Service Unavailable: (secret) has no right", tries: 1},
		"never":           {code: 400, want: "refused: tell: the answer is 400 Bad Request: (secret) has no right", tries: 1},
		"too large":       {code: 413, want: "refused: tell: the answer is 413 Request Entity Too Large: (secret) has no right", tries: 1},
		"who are you":     {code: 403, want: "tell: the answer is 403 Forbidden: (secret) has no right", tries: 1},
		"not there":       {code: 404, want: "tell: the answer is 404 Not Found: (secret) has no right", tries: 1},
		"elsewhere":       {code: 302, want: "tell: the answer is 302 Found: it leads to http://169.254.169.254, where nobody follows: write the address that is meant", tries: 1},
		"elsewhere again": {code: 307, want: "tell: the answer is 307 Temporary Redirect: it leads to http://169.254.169.254, where nobody follows: write the address that is meant", tries: 1},
	} {
		var tries atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if tries.Add(1) > 1 {
				w.WriteHeader(200)
				return
			}
			if tc.header == "DATE" {
				tc.header = clock.Now().Add(40 * time.Second).UTC().Format(http.TimeFormat)
			}
			w.Header().Set("Retry-After", tc.header)
			w.Header().Set("Location", "http://169.254.169.254/hunter2")
			w.WriteHeader(tc.code)
			fmt.Fprintln(w, "hunter2\nhas no right")
		}))
		c, err := outbound.New(outbound.Options{Allow: []string{"127.0.0.1"}, Secrets: []string{"hunter2"}, Clock: notice.Clock{Now: clock.Now, Sleep: clock.Sleep}})
		must(t, err)
		began := clock.Now()
		_, err = c.Send(t.Context(), "tell", func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/hunter2", http.NoBody)
		})
		if took := clock.Now().Sub(began); fmt.Sprint(err) != tc.want || tries.Load() != tc.tries || took < tc.atLeast {
			t.Errorf("%s: %v after %d tries and %s", name, err, tries.Load(), took)
		}
		if errors.Is(err, notice.ErrRefused) != strings.HasPrefix(tc.want, "refused") {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
	}
}

// What never gets out is said at once, without the path of the address; an answer without
// an end is not read.
func TestWhatIsNotAnswered(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = nil
	defer untrusted.Close()
	dns := &names{}
	for name, tc := range map[string]struct{ address, want string }{
		"endless":   {endless.URL, "tell: the answer is larger than 1048576 bytes"},
		"untrusted": {untrusted.URL + "/secret", "tell: " + untrusted.URL + ": tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"no name":   {"https://nowhere.example/secret", "tell: https://nowhere.example: dial tcp: lookup nowhere.example"},
	} {
		c, err := outbound.New(outbound.Options{Allow: []string{"127.0.0.1"}, Resolver: dns.resolver(t)})
		must(t, err)
		_, err = c.Send(t.Context(), "tell", func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, tc.address, nil)
		})
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "/secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A library's transport gets what an answer says of when to come back.
func TestHints(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(503)
	}))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	must(t, err)
	a, err := outbound.Hints{RoundTripper: http.DefaultTransport, Now: time.Now}.RoundTrip(r)
	if a != nil {
		a.Body.Close()
	}
	if e, ok := errors.AsType[*outbound.StatusError](err); a != nil || !ok || *e != (outbound.StatusError{Code: 503, After: 7 * time.Second}) {
		t.Errorf("%v, %v", a, err)
	}
}
