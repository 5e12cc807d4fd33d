package paging

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/outbound"
	hooks "github.com/unpend/unpend/watcher/webhook"
)

const (
	theKey    = "0123456789abcdef0123456789abcdef"
	theSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of the specification's example
)

// seen is what people see of one incident.
type seen struct {
	key, state, text string
	log              []string // what was done, in order
}

// fake is a vendor in this process, which takes nothing that its schema does not.
type fake struct {
	*httptest.Server
	t      *testing.T
	clock  *notifytest.Clock
	schema routers.Router
	kind   kind
	taking func() // nil: nothing; called before a request is taken

	mu     sync.Mutex
	faults []notifytest.Fault
	writes int
	pages  []*seen
	kept   map[string][]byte
}

// kind is what tells one vendor from another.
type kind struct {
	name   string
	secret string
	make   func(o Options, address string) (*Pager, error)
	// take says what a request does, and how it is answered.
	take   func(f *fake, r *http.Request, body []byte) (code int, answer string)
	locked func() (int, string)
	soft   func() (int, string)
}

var kinds = []kind{
	{"pagerduty", theKey, func(o Options, address string) (*Pager, error) { return PagerDuty(o, theKey, address) }, takeEvent,
		func() (int, string) {
			return 400, `{"status":"invalid event","message":"Event object is invalid","errors":["Invalid routing key"]}`
		},
		func() (int, string) { return 202, `{"status":"throttled","message":"later"}` }},
	{"alertmanager", theKey, func(o Options, address string) (*Pager, error) { return Alertmanager(o, address, theKey) }, takeAlerts,
		func() (int, string) { return 401, "who are you" }, nil},
	{"opsgenie", theKey, func(o Options, address string) (*Pager, error) { return Opsgenie(o, theKey, address) }, takeGenie,
		func() (int, string) { return 401, `{"message":"Could not authenticate"}` }, nil},
	{"webhook", theSecret, func(o Options, address string) (*Pager, error) {
		return Webhook(o, []string{theSecret}, address+"/hook")
	}, takeHook, func() (int, string) { return 401, "bad signature" }, nil},
}

func newFake(t *testing.T, clock *notifytest.Clock, k kind) *fake {
	t.Helper()
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromFile("testdata/" + k.name + ".yaml")
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, clock: clock, schema: router, kind: k, kept: map[string][]byte{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if f.taking != nil {
		f.taking()
	}
	f.mu.Lock()
	f.writes++
	var fault notifytest.Fault
	if len(f.faults) > 0 {
		fault, f.faults = f.faults[0], f.faults[1:]
	}
	code, answer := 200, ""
	if fault.Kind == "" || fault.Kind == notifytest.LostOut {
		f.check(r, body)
		code, answer = f.kind.take(f, r, body)
	}
	f.mu.Unlock()
	switch fault.Kind {
	case notifytest.TooMany:
		w.Header().Set("Retry-After", fmt.Sprint(int(fault.After.Seconds())))
		code = 429
	case notifytest.Broken:
		code = 503
	case notifytest.Soft:
		if code = 503; f.kind.soft != nil {
			code, answer = f.kind.soft()
		}
	case notifytest.Bad:
		code, answer = 400, "no such field"
	case notifytest.BadToken:
		code, answer = f.kind.locked()
	case notifytest.Hangs:
		<-r.Context().Done()
		return
	case notifytest.LostIn, notifytest.LostOut:
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(code)
	io.WriteString(w, answer)
}

// check holds a request to the vendor's schema.
func (f *fake) check(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	route, params, err := f.schema.FindRoute(r)
	if err == nil {
		err = openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{MultiError: true}})
	}
	if err != nil {
		f.t.Errorf("%s would refuse %s: %v\n%s", f.kind.name, r.URL, err, body)
	}
}

func (f *fake) Fail(faults ...notifytest.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = slices.Clone(faults)
}

func (f *fake) Writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

func (f *fake) Messages() []notifytest.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []notifytest.Message
	for _, p := range f.pages {
		if p.state != "over" {
			id, _, _ := strings.Cut(p.key, ".")
			out = append(out, notifytest.Message{Incident: id, Text: p.text})
		}
	}
	return out
}

func (f *fake) Secrets() []string { return []string{f.kind.secret} }

func (f *fake) New(t *testing.T, c *notifytest.Clock, _ *slog.Logger) notice.Notifier {
	return f.pager(t, c, When{Everything: true})
}

func (f *fake) pager(t *testing.T, c *notifytest.Clock, when When) *Pager {
	t.Helper()
	client, err := outbound.New(outbound.Options{Allow: []string{"127.0.0.1"}, Secrets: []string{f.kind.secret}, Clock: notice.Clock{Now: c.Now, Sleep: c.Sleep}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.kind.make(Options{Cluster: "prod", ID: "0a1b2c3d", When: when, Client: client, Now: c.Now,
		Load: func(_ context.Context, key string) ([]byte, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.kept[key], nil
		},
		Save: func(_ context.Context, key string, value []byte) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.kept[key] = value
			return nil
		}}, f.URL)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// open is the page of a key that is open, made where there is none.
func (f *fake) open(key string, make bool) *seen {
	for _, p := range f.pages {
		if p.key == key && p.state != "over" {
			return p
		}
	}
	if !make {
		return nil
	}
	p := &seen{key: key, state: "firing"}
	f.pages = append(f.pages, p)
	return p
}

// takeEvent is PagerDuty's: what is of no open alert is dropped without a word.
func takeEvent(f *fake, _ *http.Request, body []byte) (int, string) {
	var e pagerDutyEvent
	f.read(body, &e)
	if p := f.open(e.Key, e.Action == "trigger"); p != nil {
		p.log = append(p.log, e.Action)
		switch e.Action {
		case "trigger":
			details, _ := json.Marshal(e.Payload.Details) //nolint:errcheck // it was read
			p.text = e.Payload.Severity + " " + e.Payload.Summary + " " + string(details)
		case "acknowledge":
			p.state = "acknowledged"
		case "resolve":
			p.state = "over"
		}
	}
	return 202, `{"status":"success","message":"Event processed","dedup_key":"` + e.Key + `"}`
}

// takeAlerts is Alertmanager's: an alert is told from another by its labels, and ends when it
// said so.
func takeAlerts(f *fake, _ *http.Request, body []byte) (int, string) {
	var all []alert
	f.read(body, &all)
	for _, a := range all {
		p := f.open(a.Labels["incident"]+"."+fmt.Sprint(a.Labels), a.Ends.After(f.clock.Now()))
		if p == nil {
			continue
		}
		p.log = append(p.log, a.Ends.Sub(f.clock.Now()).String())
		p.text = a.Labels["severity"] + " " + a.Annotations["summary"] + "\n" + a.Annotations["description"]
		if !a.Ends.After(f.clock.Now()) {
			p.state = "over"
		}
	}
	return 200, ""
}

// takeGenie is Opsgenie's: an alert that is made again is counted, and does not change.
func takeGenie(f *fake, r *http.Request, body []byte) (int, string) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/alerts"), "/")
	if len(parts) == 1 {
		var a opsgenieAlert
		f.read(body, &a)
		p := f.open(a.Alias, true)
		if p.text == "" {
			p.text = a.Priority + " " + a.Message + "\n" + a.Description
		}
		p.log = append(p.log, "create")
	} else if p := f.open(parts[1], false); p != nil {
		var n struct{ Note, Priority string }
		f.read(body, &n)
		p.log = append(p.log, parts[2])
		p.text += "\n" + n.Note + n.Priority
		switch parts[2] {
		case "close":
			p.state = "over"
		case "acknowledge":
			p.state = "acknowledged"
		}
	}
	return 202, `{"result":"Request will be processed","requestId":"x"}`
}

// takeHook is a receiver's: it checks the signature, and drops an id that it had.
func takeHook(f *fake, r *http.Request, body []byte) (int, string) {
	h := r.Header
	keys, err := hooks.Secrets("", []string{theSecret})
	if err != nil || h.Get("webhook-signature") != hooks.Sign(keys[0], h.Get("webhook-id"), h.Get("webhook-timestamp"), body) || h.Get("webhook-timestamp") != fmt.Sprint(f.clock.Now().Unix()) {
		f.t.Errorf("signature %q of %q at %q is not right", h.Get("webhook-signature"), h.Get("webhook-id"), h.Get("webhook-timestamp"))
	}
	var e event
	f.read(body, &e)
	if e.ID != h.Get("webhook-id") || len(body) > maxWebhook {
		f.t.Errorf("id %s, and %s in the header; %d bytes", e.ID, h.Get("webhook-id"), len(body))
	}
	p := f.open(e.Subject, true)
	p.log, p.text, p.state = append(p.log, strings.TrimPrefix(e.Type, "dev.unpend.incident.")), string(e.Data.State)+" "+e.Data.Summary, string(e.Data.State)
	if d := e.Data.Proposal.Finding; d != nil {
		for _, x := range d.Fixes { // who is told reads it as JSON
			if x.Record != nil {
				p.text += "\n" + x.Record.String()
			}
		}
	}
	return 204, ""
}

func (f *fake) read(body []byte, into any) {
	if err := json.Unmarshal(body, into); err != nil {
		f.t.Errorf("%s: %v", body, err)
	}
}

var noon = time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
