package service

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// What /readyz answers, and why.
func TestReadiness(t *testing.T) {
	ago := func(d time.Duration) func() time.Time {
		return func() time.Time { return time.Now().Add(-d) }
	}
	for says, c := range map[string]struct {
		code int
		make func(*readiness)
	}{
		"the cluster is still being read": {503, func(*readiness) {}},
		"ok":                              {200, func(r *readiness) { r.set() }},
		"ok, standby":                     {200, func(r *readiness) { r.set(); r.leads = func() (string, error) { return "ok, standby", nil } }},
		"store-full since noon":           {503, func(r *readiness) { r.set(); r.check = func() error { return errors.New("store-full since noon") } }},
		"diagnoses are stuck: some are due, and none was made since ": {503, func(r *readiness) { r.set(); r.stuck(ago(2 * time.Minute)) }},
		"ok\n": {200, func(r *readiness) { r.set(); r.stuck(ago(50 * time.Second)) }},
		"o":    {200, func(r *readiness) { r.set(); r.stuck(func() time.Time { return time.Time{} }) }},
	} {
		var r readiness
		c.make(&r)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if w.Code != c.code || !strings.HasPrefix(w.Body.String(), says) {
			t.Errorf("%d %q, want %d %q", w.Code, w.Body.String(), c.code, says)
		}
	}
}
