package executor

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
)

// crash ends an executor in the middle of a look, at its writes.
type crash struct {
	now context.CancelFunc // of the look
	// always: before every write, and then after it. An answer is lost then.
	always bool
	// after is what the write says that the executor crashes after.
	after string
	// at is what every write says that the executor crashes before; tries are those.
	at    string
	tries int
	sent  map[string]bool // the writes that were kept back once
	asked map[string]int  // evictions: a budget that says no is asked until the deadline
}

type roundTripper struct {
	*crash
	next http.RoundTripper
}

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if !r.always && r.after == "" && r.at == "" || req.Method == http.MethodGet || strings.Contains(req.URL.Path, "review") {
		return r.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	write := req.Method + req.URL.String()
	if strings.HasSuffix(req.URL.Path, "/eviction") {
		if r.asked[write]++; r.asked[write] > 4 {
			return r.next.RoundTrip(req)
		}
	}
	switch {
	case r.at != "":
		if !bytes.Contains(body, []byte(r.at)) {
			return r.next.RoundTrip(req)
		}
		r.tries++
		r.now()
		return nil, context.Canceled
	case r.after != "" && !bytes.Contains(body, []byte(r.after)):
		return r.next.RoundTrip(req)
	case r.always && !r.sent[write]:
		r.sent[write] = true
		r.now()
		return nil, context.Canceled
	}
	delete(r.sent, write)
	answer, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r.now()
	return nil, cmp.Or(answer.Body.Close(), context.Canceled)
}
