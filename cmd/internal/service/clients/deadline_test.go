package clients

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An API server that hangs: what is asked ends, what is watched goes on, and an answer
// that has begun may take longer.
func TestHungRequestsEnd(t *testing.T) {
	const limit = 100 * time.Millisecond
	begun := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slowly := time.NewTimer(4 * limit)
		defer slowly.Stop()
		if r.URL.Path == "/slow" {
			w.(http.Flusher).Flush()
		}
		select {
		case <-slowly.C:
			io.WriteString(w, "done")
		case <-r.Context().Done():
			close(begun)
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: deadline{server.Client().Transport, limit}}
	get := func(path string) (string, error) {
		resp, err := client.Get(server.URL + path)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return string(text), err
	}
	if _, err := get("/hung"); !errors.Is(err, errHung) {
		t.Errorf("a request that was not answered: %v", err)
	}
	<-begun // the server has heard that nobody waits any more
	for _, path := range []string{"/slow", "/hung?watch=true"} {
		if text, err := get(path); text != "done" || err != nil {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}
