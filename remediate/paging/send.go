package paging

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"github.com/unpend/unpend/remediate/notice"
)

// encode is the JSON of what is sent, within a vendor's limit in bytes.
func encode(of any, most int) ([]byte, error) {
	body, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("%w: encode it: %w", notice.ErrRefused, err)
	}
	if len(body) > most {
		return nil, fmt.Errorf("%w: it has %d bytes, more than the %d that are taken", notice.ErrRefused, len(body), most)
	}
	return body, nil
}

// post makes a request of JSON, again for each try.
func post(at *url.URL, body []byte, header http.Header) func(context.Context) (*http.Request, error) {
	return request(http.MethodPost, at, body, header)
}

func request(method string, at *url.URL, body []byte, header http.Header) func(context.Context) (*http.Request, error) {
	return func(ctx context.Context) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("User-Agent", "unpend")
		maps.Copy(r.Header, header)
		return r, nil
	}
}
