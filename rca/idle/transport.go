package idle

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// maxAnswer bounds an answer in bytes: 10,000 series of one window are 5 MB.
const maxAnswer = 32 << 20

// transport sends the token and reads no endless answer.
type transport struct {
	next      http.RoundTripper
	tokenFile string
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.tokenFile != "" {
		token, err := os.ReadFile(t.tokenFile)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read the token: %w", err), closeBody(r))
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	return resp, nil
}

// closeBody is owed by a RoundTripper that does not pass its request on.
func closeBody(r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	return r.Body.Close()
}

// refuseRedirect: the token is for the host that was named, and a login page is no
// measurement.
func refuseRedirect(r *http.Request, _ []*http.Request) error {
	return errors.New("redirects to " + r.URL.Host + ": give that address if it is meant")
}
