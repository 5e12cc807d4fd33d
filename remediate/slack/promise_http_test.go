package slack_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/slack"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
)

// byHTTP is a listener that hears by HTTP, and how it ends.
func byHTTP(t *testing.T) (*heard, *slack.Listener, func()) {
	t.Helper()
	h := &heard{newWorkspace(t, notifytest.NewClock()), &ledger{}, &strings.Builder{}}
	h.Join(ada)
	o := h.options(notice.Clock{})
	o.AppToken, o.SigningSecret = "", fakeslack.Secret
	l, err := slack.NewListener(o)
	if err != nil {
		t.Fatal(err)
	}
	return h, l, func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Run(ctx); err != nil { // what was heard is done
			t.Error(err)
		}
	}
}

// request is what Slack sends of a click, as it signs it at a time.
func request(t *testing.T, at time.Time, secret string) (*http.Request, []byte) {
	t.Helper()
	payload, err := json.Marshal(fakeslack.Clicked(ada, fakeslack.Channel, "1.1", slack.ActApprove, "v1:"+plan+":"+incidentID))
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(url.Values{"payload": {string(payload)}}.Encode())
	return signed(at, secret, "application/x-www-form-urlencoded", body), body
}

func signed(at time.Time, secret, kind string, body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	stamp := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	r.Header.Set("Content-Type", kind)
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return r
}

func answer(l *slack.Listener, r *http.Request) int {
	w := httptest.NewRecorder()
	l.ServeHTTP(w, r)
	return w.Code
}

const once = "approve by U0ADA: " + incidentID + " " + plan

// S1: the same request again is refused, however soon it comes.
func promiseS1(t *testing.T) {
	h, l, done := byHTTP(t)
	first, body := request(t, time.Now(), fakeslack.Secret)
	if got := answer(l, first); got != http.StatusOK {
		t.Fatalf("%d", got)
	}
	for range 10 {
		again := first.Clone(t.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		if got := answer(l, again); got != http.StatusConflict {
			t.Errorf("again: %d", got)
		}
	}
	done()
	if got := strings.Join(h.all(), ", "); got != once {
		t.Errorf("the desk is asked %q", got)
	}
	fmt.Println("S1 10/10, replays of a request that Slack has signed refused")
}

// S2, R18: what was signed more than five minutes from now, either way, is refused.
func promiseS2(t *testing.T) {
	h, l, done := byHTTP(t)
	for _, off := range []time.Duration{-time.Hour, -6 * time.Minute, -5*time.Minute - 2*time.Second, 5*time.Minute + 30*time.Second, 6 * time.Minute, 1000 * time.Hour} {
		r, _ := request(t, time.Now().Add(off), fakeslack.Secret)
		if got := answer(l, r); got != http.StatusUnauthorized {
			t.Errorf("%s: %d", off, got)
		}
	}
	for _, off := range []time.Duration{-4 * time.Minute, 4 * time.Minute} {
		r, _ := request(t, time.Now().Add(off), fakeslack.Secret)
		if got := answer(l, r); got != http.StatusOK {
			t.Errorf("%s: %d", off, got)
		}
	}
	done()
	if got := len(h.all()); got != 2 {
		t.Errorf("the desk is asked %d times", got)
	}
	fmt.Println("S2 8/8, requests by their time: more than 5 minutes off, either way, are refused")
}

// S3, in its short form, and with UNPEND_SOAK=1 as it is promised: one bit of the body, of the signature or of the time, a header that is missing, another
// secret, or half of it: none is let in, and nothing is asked for.
func promiseS3(t *testing.T) {
	h, l, done := byHTTP(t)
	tried := 0
	refused := func(name string, r *http.Request) {
		t.Helper()
		if tried++; answer(l, r) != http.StatusUnauthorized {
			t.Errorf("%s is let in", name)
		}
	}
	good, body := request(t, time.Now(), fakeslack.Secret)
	with := func(header, value string, body []byte) *http.Request {
		r := good.Clone(t.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		if header != "" {
			r.Header.Set(header, value)
		}
		return r
	}
	for _, secret := range []string{"", "another", fakeslack.Secret + " "} {
		r, _ := request(t, time.Now(), secret)
		refused("secret "+secret, r)
	}
	signature, stamp := good.Header.Get("X-Slack-Signature"), good.Header.Get("X-Slack-Request-Timestamp")
	for _, s := range []string{"", "v0=", strings.TrimPrefix(signature, "v0="), "v1" + signature[2:], signature[:len(signature)-2], signature + "00", "v0=" + strings.Repeat("0", 64)} {
		refused("signature "+s, with("X-Slack-Signature", s, body))
	}
	for _, s := range []string{"", "now", "0", "-" + stamp, stamp + "0", stamp + " ", "99999999999999999999"} {
		refused("time "+s, with("X-Slack-Request-Timestamp", s, body))
	}
	refused("nothing", with("", "", nil))
	refused("half", with("", "", body[:len(body)/2]))
	r := rand.New(rand.NewPCG(3, 3)) //nolint:gosec // the same each time
	bits := 20_000
	if os.Getenv("UNPEND_SOAK") == "1" {
		bits = 1_000_000
	}
	for range bits {
		bad := bytes.Clone(body)
		bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		refused("one bit", with("", "", bad))
	}
	for i := range 256 {
		raw, err := hex.DecodeString(signature[3:])
		if err != nil {
			t.Fatal(err)
		}
		raw[i/8] ^= 1 << (i % 8)
		refused("one bit of the signature", with("X-Slack-Signature", "v0="+hex.EncodeToString(raw), body))
	}
	if got := answer(l, with("", "", body)); got != http.StatusOK {
		t.Errorf("the good one: %d", got)
	}
	done()
	if got := strings.Join(h.all(), ", "); got != once {
		t.Errorf("the desk is asked %q", got)
	}
	fmt.Printf("S3 %d/%d, forged requests refused, 0 asked for anything\n", tried, tried)
}

// endless is a body that does not end; it counts what was read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

// S4: of a body that does not end no more is read than may come, before anything is worked out.
func promiseS4(t *testing.T) {
	h, l, done := byHTTP(t)
	for range 50 {
		r, _ := request(t, time.Now(), fakeslack.Secret)
		huge := &endless{}
		r.Body = io.NopCloser(huge)
		if got := answer(l, r); got != http.StatusRequestEntityTooLarge || huge.read > 256<<10 {
			t.Errorf("%d after %d bytes", got, huge.read)
		}
	}
	for kind, body := range map[string][]byte{"application/x-www-form-urlencoded": []byte("payload=%7B%22type%22"), "application/json": []byte(`{"type":`)} {
		if got := answer(l, signed(time.Now(), fakeslack.Secret, kind, body)); got != http.StatusBadRequest {
			t.Errorf("half of a %s: %d", kind, got)
		}
	}
	done()
	if got := h.all(); len(got) != 0 {
		t.Errorf("the desk is asked %q", got)
	}
	fmt.Println("S4 52/52, endless and truncated bodies refused, at most 256 KiB of each read")
}

// Slack asks whether it is us when the address is configured.
func TestChallenge(t *testing.T) {
	_, l, _ := byHTTP(t)
	w := httptest.NewRecorder()
	l.ServeHTTP(w, signed(time.Now(), fakeslack.Secret, "application/json", []byte(`{"type":"url_verification","challenge":"3eZbrw1aB","token":"x"}`)))
	if w.Code != http.StatusOK || w.Body.String() != "3eZbrw1aB" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
