package executor

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// OneWrite hands every answer to a write to the writer. Without it client-go
// makes a write again by itself, up to ten times, when the API server says "later"
// (Retry-After; rest/with_retry.go): by then somebody may have turned the kill switch,
// another may lead, or the object be another. How long the server wants to be left
// alone is in the error (apierrors.SuggestsClientDelay). The leader's lease is left to
// client-go: its elector would write again at once.
func OneWrite(next http.RoundTripper) http.RoundTripper { return oneWrite{next} }

type oneWrite struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o oneWrite) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	if err != nil || r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/leases/"+LeaderLease) {
		return resp, err
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		return resp, nil
	}
	return later(r, resp, seconds)
}

// mostOfAnswer bounds what is read of an answer that says "later".
const mostOfAnswer = 64 << 10

// later puts the delay into the answer's body, where client-go only reads it.
func later(r *http.Request, resp *http.Response, seconds int) (*http.Response, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostOfAnswer))
	if cerr := resp.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	status := apierrors.NewGenericServerResponse(resp.StatusCode, r.Method, schema.GroupResource{}, "", string(text), seconds, true).ErrStatus
	var told metav1.Status
	if _, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(text, nil, &told); err == nil && told.Status == metav1.StatusFailure {
		if status = told; status.Details == nil {
			status.Details = &metav1.StatusDetails{}
		}
		status.Details.RetryAfterSeconds = int32(seconds)
	}
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	resp.Header.Del("Retry-After")
	resp.Header.Set("Content-Type", runtime.ContentTypeJSON)
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}
