package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

const pagerSecret, oldPagerSecret = "a-secret-that-pagerduty-made", "the-one-that-was-before-it"

// pages is the hook of PagerDuty, and what was heard by it.
type pages struct {
	*Hooks
	away  error
	heard []string
}

func newPages(t *testing.T) *pages {
	t.Helper()
	p := &pages{}
	h, err := New(Options{PagerDuty: []string{oldPagerSecret, pagerSecret}, Registerer: prometheus.NewRegistry(), Now: func() time.Time { return noon }, Said: func(_ context.Context, s Said) error {
		if p.away == nil {
			p.heard = append(p.heard, fmt.Sprintf("%s by %s at %s: %t", s.Key, s.By, s.At.Format(time.RFC3339), s.Sees))
		}
		return p.away
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.Hooks = h
	return p
}

// pagerEvent is one as PagerDuty documents it: https://developer.pagerduty.com/docs/webhooks-overview
func pagerEvent(id, kind, key string) string {
	return fmt.Sprintf(`{"event":{"id":%q,"event_type":%q,"resource_type":"incident","occurred_at":"2026-11-22T12:00:00.169Z","agent":{"html_url":"https://acme.pagerduty.com/users/PLH1HKV","id":"PLH1HKV","summary":"Ada","type":"user_reference"},"client":{"name":"PagerDuty"},"data":{"id":"PGR0VU2","type":"incident","number":2,"status":"triggered","incident_key":%q,"title":"x"}}}`, id, kind, key)
}

func (p *pages) call(t *testing.T, body, signatures string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/pagerduty", strings.NewReader(body))
	if signatures != "" {
		r.Header.Set("X-PagerDuty-Signature", signatures)
	}
	return p.answer(r)
}

func (p *pages) answer(r *http.Request) string {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return fmt.Sprintf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
}

func by(secret, body string) string { return signPagerDuty([]byte(secret), []byte(body)) }

// Who acknowledges a page is heard, and who takes that back; what else PagerDuty tells, and
// what came before, is taken and passed over, for three that are refused end all.
func TestPagerDutyCalls(t *testing.T) {
	const told, nothing, before = "202 it is told where the incident is", "202 it says nothing of who sees to a page", "202 this event came before"
	p := newPages(t)
	ack := pagerEvent("1", "incident.acknowledged", "gpu-1.here")
	for _, c := range []struct{ body, signatures, want, result string }{
		{ack, by(pagerSecret, ack), told, "taken"},
		{ack, by(pagerSecret, ack), before, "replayed"},
		{ack, by(oldPagerSecret, ack), before, "replayed"},
		{pagerEvent("2", "incident.unacknowledged", "gpu-1.here"), "", told, "taken"},
		{pagerEvent("3", "incident.resolved", "gpu-1.here"), "", told, "taken"},
		{pagerEvent("4", "incident.reopened", "gpu-1.here"), "", told, "taken"},
		{pagerEvent("5", "incident.triggered", "gpu-1.here"), "", nothing, "passed over"},
		{pagerEvent("6", "incident.kind_of_tomorrow", "gpu-1.here"), "", nothing, "passed over"},
		{pagerEvent("", "incident.acknowledged", "gpu-1.here"), "", nothing, "passed over"},
		{pagerEvent("7", "incident.acknowledged", ""), "", nothing, "passed over"},
		{`{"event":{"id":"8","event_type":"service.updated","agent":null,"client":null,"data":{}}}`, "", nothing, "passed over"},
		{ack[:60], "", nothing, "passed over"},
		{`[]`, "", nothing, "passed over"},
	} {
		if c.signatures == "" {
			c.signatures = "v2=00, v1=zz," + by("somebody-else-s-secret", c.body) + ", " + by(pagerSecret, c.body)
		}
		count := testutil.ToFloat64(p.counts.WithLabelValues("pagerduty", c.result))
		if got := p.call(t, c.body, c.signatures); got != c.want {
			t.Errorf("%s: %s", c.body, got)
		}
		if testutil.ToFloat64(p.counts.WithLabelValues("pagerduty", c.result)) != count+1 {
			t.Errorf("%s is not counted as %s", c.body, c.result)
		}
	}
	const at = "gpu-1.here by Ada at 2026-11-22T12:00:00Z: "
	if got := strings.Join(p.heard, "\n"); got != at+"true\n"+at+"false\n"+at+"false\n"+at+"false" {
		t.Error(got)
	}
}

// What is forged, changed, huge or cut on its way does nothing, and is counted (S3, S4).
func TestPagerDutyRefused(t *testing.T) {
	const forged = "401 no signature in X-PagerDuty-Signature is by a secret of hooks.pagerDutySecretFile"
	p := newPages(t)
	ack := pagerEvent("1", "incident.acknowledged", "gpu-1.here")
	good := by(pagerSecret, ack)
	for name, signatures := range map[string]string{"none": "", "empty": "v1=", "of no secret": by("", ack), "of another": by("somebody-else-s-secret", ack), "another version": strings.Replace(good, "v1=", "v2=", 1), "no version": strings.TrimPrefix(good, "v1="),
		"cut": good[:len(good)-1], "too long": good + "0", "capitals": strings.ToUpper(good), "many": strings.Repeat("v1=00,", 2000)} {
		if got := p.call(t, ack, signatures); got != forged {
			t.Errorf("%s: %s", name, got)
		}
	}
	for i := range ack {
		changed := []byte(ack)
		changed[i] ^= 1
		if got := p.call(t, string(changed), good); got != forged {
			t.Fatalf("%s: %s", changed, got)
		}
	}
	huge := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/pagerduty", io.LimitReader(endless{}, 1<<30))
	cut := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/pagerduty", io.MultiReader(strings.NewReader(ack[:20]), broken{}))
	if got := p.answer(huge); got != "413 the body is larger than 65536 bytes" {
		t.Error(got)
	}
	if got := p.answer(cut); got != "400 the body could not be read to its end" {
		t.Error(got)
	}
	if len(p.heard) != 0 || testutil.ToFloat64(p.counts.WithLabelValues("pagerduty", "forged")) != float64(10+len(ack)) {
		t.Errorf("heard %v", p.heard)
	}
	for _, secret := range []string{"hunter2", ""} {
		if _, err := New(Options{PagerDuty: []string{secret}, Registerer: prometheus.NewRegistry()}); err == nil || !strings.HasPrefix(err.Error(), "hooks.pagerDutySecretFile: a line has ") {
			t.Error(err)
		}
	}
}

// What cannot be told now comes again, and is told then.
func TestPagerDutyAway(t *testing.T) {
	p := newPages(t)
	ack := pagerEvent("1", "incident.acknowledged", "gpu-1.here")
	p.away = errors.New("another process leads")
	for range 2 {
		if got := p.call(t, ack, by(pagerSecret, ack)); got != "503 it cannot be looked at now, try again" {
			t.Error(got)
		}
	}
	p.away = nil
	if got := p.call(t, ack, by(pagerSecret, ack)); got != "202 it is told where the incident is" || len(p.heard) != 1 {
		t.Errorf("%s, heard %v", got, p.heard)
	}
}

// The signature is HMAC-SHA256 of the body in hexadecimal, as a well-known example has it:
// https://en.wikipedia.org/wiki/HMAC#Examples
func TestPagerDutySignature(t *testing.T) {
	if got := by("key", "The quick brown fox jumps over the lazy dog"); got != "v1=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8" {
		t.Error(got)
	}
}
