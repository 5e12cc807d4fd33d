package events

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxAnswer bounds one page of Events in bytes: one Event is at most 1.5 MiB, which is
// what etcd takes.
const maxAnswer = 16 << 20

// errTooLarge is what reading a page ends with that weighs more.
var errTooLarge = errors.New("the page is too large")

// Bounded gives up reading a page of Events that is too large; NewInformer then asks for
// a smaller one. It wraps the transport of the client that NewInformer is given.
func Bounded(next http.RoundTripper) http.RoundTripper { return bounded{next} }

type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Has("limit") && !r.URL.Query().Has("watch") {
		resp.Body = &body{resp.Body, maxAnswer}
	}
	return resp, err
}

// body ends with errTooLarge after so many bytes.
type body struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: over %d MiB", errTooLarge, maxAnswer>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
