package events

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range maxAnswer>>20 + 1 {
			if _, err := w.Write(chunk); err != nil {
				return // the reader has gone
			}
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: Bounded(http.DefaultTransport)}
	for path, want := range map[string]error{
		"/api/v1/events?limit=50":                  errTooLarge,
		"/api/v1/namespaces/ml/events?limit=50":    errTooLarge,
		"/api/v1/pods?limit=50":                    nil,
		"/api/v1/events":                           nil,
		"/api/v1/events?watch=true&limit=50":       nil,
		"/api/v1/namespaces/ml/pods/events?a=lim1": nil,
	} {
		resp, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close() //nolint:errcheck // nothing more is read
		if !errors.Is(err, want) || want != nil && n > maxAnswer {
			t.Errorf("%s: %d bytes, %v", path, n, err)
		}
	}
}
