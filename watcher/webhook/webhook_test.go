package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	am "github.com/unpend/unpend/testdata/alertmanager"
)

const (
	theToken  = "let-me-in"
	theSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of the specification's example
	oldSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// desk is the hooks, and what was looked at by them.
type desk struct {
	*Hooks
	now    time.Time
	away   error
	looked []Pod
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{now: noon}
	h, err := New(Options{Token: theToken, Secrets: []string{oldSecret, theSecret}, Registerer: prometheus.NewRegistry(), Now: func() time.Time { return d.now }, Look: func(_ context.Context, pods []Pod) error {
		if d.away == nil {
			d.looked = append(d.looked, pods...)
		}
		return d.away
	}})
	if err != nil {
		t.Fatal(err)
	}
	d.Hooks = h
	return d
}

// answer is what a call is answered with.
func (d *desk) answer(r *http.Request) string {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return fmt.Sprintf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
}

func alertCall(t *testing.T, token, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/alertmanager", strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func standardCall(t *testing.T, secret, id string, at time.Time, body string) *http.Request {
	t.Helper()
	keys, err := Secrets("", []string{secret})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/standard", strings.NewReader(body))
	stamp := fmt.Sprint(at.Unix())
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", stamp)
	r.Header.Set("webhook-signature", "v1,AAAA "+Sign(keys[0], id, stamp, []byte(body)))
	return r
}

func firing(pods ...string) string {
	var all []string
	for i, p := range pods {
		namespace, name, _ := strings.Cut(p, "/")
		all = append(all, fmt.Sprintf(`{"status":"firing","labels":{"alertname":"A","namespace":%q,"pod":%q},"startsAt":"2026-11-22T11:00:00Z","endsAt":"0001-01-01T00:00:00Z","fingerprint":"f%d"}`, namespace, name, i))
	}
	return `{"version":"4","status":"firing","receiver":"unpend","groupKey":"g","alerts":[` + strings.Join(all, ",") + `]}`
}

// The pods that an Alertmanager names are looked at, once for one alert within a minute;
// what has ended, names no pod or none that could be, is nothing.
func TestAlertmanagerCalls(t *testing.T) {
	d := newDesk(t)
	for _, step := range []struct {
		pass time.Duration
		body string
		want string
		pods string
	}{
		{0, firing("ml/train-0", "ml/train-1"), "202 2 pods are looked at if they wait", "[{ml train-0} {ml train-1}]"},
		{59 * time.Second, firing("ml/train-0"), "202 0 pods are looked at if they wait", "[]"},
		{2 * time.Second, firing("ml/train-0"), "202 1 pods are looked at if they wait", "[{ml train-0}]"},
		{0, strings.ReplaceAll(firing("ml/other"), `"status":"firing","labels"`, `"status":"resolved","labels"`), "202 0 pods are looked at if they wait", "[]"},
		{0, firing("", "ml/", "/x", "ml/../../x", "ml/X", "ml/a b", strings.Repeat("n", 64)+"/x"), "202 0 pods are looked at if they wait", "[]"},
		{0, `{"alerts":[]}`, "202 0 pods are looked at if they wait", "[]"},
		{0, `{"version":"5","alerts":[]}`, `400 the notification is of version "5", and 4 is known`, "[]"},
	} {
		d.now, d.looked = d.now.Add(step.pass), []Pod{}
		if got := d.answer(alertCall(t, theToken, step.body)); got != step.want || fmt.Sprint(d.looked) != step.pods {
			t.Errorf("%s: %s, looked at %v", step.body, got, d.looked)
		}
	}
	many := make([]string, 500)
	for i := range many {
		many[i] = fmt.Sprintf("big/pod-%d", i)
	}
	if got := d.answer(alertCall(t, theToken, firing(many...))); got != "202 100 pods are looked at if they wait" {
		t.Error(got)
	}
}

// Who signs by one of the secrets names pods in the body, or in the data of a CloudEvent.
func TestStandardCalls(t *testing.T) {
	d := newDesk(t)
	for i, tc := range []struct{ secret, body, pods string }{
		{theSecret, `{"namespace":"ml","pod":"train-0"}`, "[{ml train-0}]"},
		{oldSecret, `{"type":"x","data":{"namespace":"ml","pod":"train-0","pods":[{"namespace":"a","name":"b"},{"namespace":"a","name":"b"}]}}`, "[{a b} {ml train-0}]"},
		{theSecret, `{}`, "[]"},
	} {
		d.looked = []Pod{}
		if got := d.answer(standardCall(t, tc.secret, fmt.Sprint("msg_", i), d.now, tc.body)); !strings.HasPrefix(got, "202 ") || fmt.Sprint(d.looked) != tc.pods {
			t.Errorf("%s: %s, %v", tc.body, got, d.looked)
		}
	}
}

// Replayed, old, forged, truncated, huge and malformed calls are refused with a sentence, do
// nothing and are counted (S1, S2, S3, S4).
func TestRefused(t *testing.T) {
	const body = `{"namespace":"ml","pod":"train-0"}`
	d := newDesk(t)
	if got := d.answer(standardCall(t, theSecret, "msg_1", noon, body)); got != "202 1 pods are looked at if they wait" {
		t.Fatal(got)
	}
	d.now, d.looked = d.now.Add(time.Second), nil
	changed := func(change func(*http.Request)) *http.Request {
		r := standardCall(t, theSecret, "msg_2", d.now, body)
		change(r)
		return r
	}
	cut := alertCall(t, theToken, "")
	cut.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"alerts":[`), broken{}))
	const forged, nothing = "401 no signature in webhook-signature is by a secret of hooks.secretFile", "400 the headers webhook-id and webhook-timestamp say nothing"
	for name, tc := range map[string]struct {
		call   *http.Request
		want   string
		result string
	}{
		"replayed":          {standardCall(t, theSecret, "msg_1", noon, body), "409 this call came before", "replayed"},
		"5:01 ago":          {standardCall(t, theSecret, "msg_3", d.now.Add(-5*time.Minute-time.Second), body), "401 webhook-timestamp is more than 5m0s from the time here", "old"},
		"5:01 ahead":        {standardCall(t, theSecret, "msg_4", d.now.Add(5*time.Minute+time.Second), body), "401 webhook-timestamp is more than 5m0s from the time here", "old"},
		"another secret":    {standardCall(t, "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB", "msg_5", d.now, body), forged, "forged"},
		"another body":      {changed(func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(body + " ")) }), forged, "forged"},
		"another id":        {changed(func(r *http.Request) { r.Header.Set("webhook-id", "msg_6") }), forged, "forged"},
		"another time":      {changed(func(r *http.Request) { r.Header.Set("webhook-timestamp", fmt.Sprint(d.now.Unix()+1)) }), forged, "forged"},
		"no signature":      {changed(func(r *http.Request) { r.Header.Del("webhook-signature") }), forged, "forged"},
		"no id":             {changed(func(r *http.Request) { r.Header.Del("webhook-id") }), nothing, "malformed"},
		"no time":           {changed(func(r *http.Request) { r.Header.Set("webhook-timestamp", "now") }), nothing, "malformed"},
		"huge":              {changed(func(r *http.Request) { r.Body = io.NopCloser(io.LimitReader(endless{}, 1<<30)) }), "413 the body is larger than 65536 bytes", "large"},
		"no JSON":           {standardCall(t, theSecret, "msg_7", d.now, "<x>"), "400 the body is no JSON that names pods", "malformed"},
		"no token":          {alertCall(t, "", firing("ml/a")), "401 the bearer token is not that of hooks.tokenFile", "forged"},
		"another token":     {alertCall(t, theToken+"x", firing("ml/a")), "401 the bearer token is not that of hooks.tokenFile", "forged"},
		"huge alerts":       {alertCall(t, theToken, strings.Repeat(" ", maxAlerts+1)), "413 the body is larger than 1048576 bytes", "large"},
		"truncated alerts":  {alertCall(t, theToken, firing("ml/a")[:60]), "400 the body is no notification of an Alertmanager", "malformed"},
		"cut on its way":    {cut, "400 the body could not be read to its end", "truncated"},
		"not even an alert": {alertCall(t, theToken, `{"a":1}`), "400 the body is no notification of an Alertmanager", "malformed"},
	} {
		hook := strings.TrimPrefix(tc.call.URL.Path, "/hooks/")
		before := testutil.ToFloat64(d.counts.WithLabelValues(hook, tc.result))
		if got := d.answer(tc.call); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
		if after := testutil.ToFloat64(d.counts.WithLabelValues(hook, tc.result)); after != before+1 {
			t.Errorf("%s is counted %v times", name, after-before)
		}
	}
	if len(d.looked) != 0 {
		t.Errorf("looked at %v", d.looked)
	}
	if got := d.answer(standardCall(t, theSecret, "msg_1", d.now, body)); got != "202 0 pods are looked at if they wait" || len(d.looked) != 0 { // tried again by its sender
		t.Errorf("%s, %v", got, d.looked)
	}
	if got := d.answer(standardCall(t, theSecret, "msg_1", d.now, body)); !strings.HasPrefix(got, "409") {
		t.Errorf("the second try is replayed: %s", got)
	}
}

// One changed bit anywhere in what is signed is one too many (S3).
func TestChangedBits(t *testing.T) {
	d := newDesk(t)
	body := []byte(`{"namespace":"ml","pod":"train-0"}`)
	good := standardCall(t, theSecret, "msg_1", noon, string(body))
	signature := []byte(strings.Fields(good.Header.Get("webhook-signature"))[1])
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	const of = 2000
	for range of {
		b, s := slices.Clone(body), slices.Clone(signature)
		if r.IntN(2) == 0 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		} else {
			s[3+r.IntN(len(s)-3)] ^= 1 << r.IntN(8)
		}
		call := standardCall(t, theSecret, "msg_1", noon, string(b))
		call.Header.Set("webhook-signature", string(s))
		if got := d.answer(call); !strings.HasPrefix(got, "401 ") {
			t.Fatalf("%q, %q: %s", b, s, got)
		}
	}
	if len(d.looked) != 0 {
		t.Errorf("looked at %v", d.looked)
	}
}

// What cannot be looked at now is to come again, and is dealt with then.
func TestAway(t *testing.T) {
	d := newDesk(t)
	d.away = errors.New("another process leads")
	for range 2 {
		if got := d.answer(alertCall(t, theToken, firing("ml/a"))); got != "503 it cannot be looked at now, try again" {
			t.Error(got)
		}
		if got := d.answer(standardCall(t, theSecret, "msg_1", noon, `{"namespace":"ml","pod":"b"}`)); got != "503 it cannot be looked at now, try again" {
			t.Error(got)
		}
	}
	d.away = nil
	d.answer(alertCall(t, theToken, firing("ml/a")))
	d.answer(standardCall(t, theSecret, "msg_1", noon, `{"namespace":"ml","pod":"b"}`))
	if got := fmt.Sprint(d.looked); got != "[{ml a} {ml b}]" {
		t.Error(got)
	}
}

// A hook without its secret is not there.
func TestNotThere(t *testing.T) {
	h, err := New(Options{Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{Hooks: h}
	for _, r := range []*http.Request{alertCall(t, "", firing("ml/a")), standardCall(t, theSecret, "m", noon, "{}")} {
		if got := d.answer(r); !strings.HasPrefix(got, "404 ") {
			t.Error(got)
		}
	}
	if _, err := New(Options{Secrets: []string{"hunter2"}, Registerer: prometheus.NewRegistry()}); err == nil || err.Error() != "hooks.secretFile: a secret is whsec_ and 24 to 64 bytes in base64" {
		t.Error(err)
	}
}

// A real Alertmanager is heard: once with the wrong token, which does nothing, then with the
// right one.
func TestRealAlertmanager(t *testing.T) {
	looked := make(chan []Pod, 100)
	h, err := New(Options{Token: theToken, Registerer: prometheus.NewRegistry(), Look: func(_ context.Context, pods []Pod) error {
		looked <- pods
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	hook := func(token string) string {
		return `[{url: "` + server.URL + `/hooks/alertmanager", http_config: {authorization: {credentials: ` + token + `}}}]`
	}
	address := am.Start(t, `
route: {receiver: right, group_wait: 10ms, group_interval: 100ms, routes: [{receiver: wrong, continue: true}, {receiver: right}]}
receivers: [{name: wrong, webhook_configs: `+hook("wrong")+`}, {name: right, webhook_configs: `+hook(theToken)+`}]
`)
	answer, err := http.Post(address+"/api/v2/alerts", "application/json", strings.NewReader(`[{"labels":{"alertname":"KubePodNotReady","namespace":"ml","pod":"train-0"}},{"labels":{"alertname":"Other"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != 200 {
		t.Fatal(answer.Status)
	}
	select {
	case got := <-looked:
		if fmt.Sprint(got) != "[{ml train-0}]" {
			t.Errorf("looked at %v", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing is looked at")
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// The signature is that of the specification's example.
func TestSignatureOfTheSpecification(t *testing.T) {
	keys, err := Secrets("", []string{theSecret})
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := Sign(keys[0], "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("%s", got)
	}
}
