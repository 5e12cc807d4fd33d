package paging

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/outbound"
	am "github.com/unpend/unpend/testdata/alertmanager"
)

// A real Alertmanager has the incident as an alert, routes it, silences it as any other, and
// says that it is over once the incident is.
func TestRealAlertmanager(t *testing.T) {
	heard := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		heard <- string(body)
	}))
	defer receiver.Close()
	address := am.Start(t, `
route: {receiver: nobody, group_by: [incident], group_wait: 10ms, group_interval: 100ms, repeat_interval: 1h, routes: [{receiver: hook, matchers: ['namespace="ml"', 'cause="MIGLayoutMismatch"']}]}
receivers: [{name: nobody}, {name: hook, webhook_configs: [{url: "`+receiver.URL+`"}]}]
`)
	client, err := outbound.New(outbound.Options{Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t, notifytest.NewClock(), kinds[1])
	o := f.pager(t, f.clock, When{Everything: true}).Options
	o.Client, o.Now = client, time.Now
	n, err := Alertmanager(o, address, "")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	p := finding()
	p.Finding.Pods.Since = now.Add(-time.Hour)
	tell(t, n, p)
	for _, want := range []string{`"status":"firing"`, `"incident":"` + incidentID + `"`, `"summary":"` + p.Finding.Headline} {
		if got := hear(t, heard); !strings.Contains(got, want) {
			t.Fatalf("%s is not in %s", want, got)
		} else {
			heard <- got
		}
	}
	<-heard
	if got := alerts(t, address); len(got) != 1 || got[0].Status.State != "active" || !got[0].Starts.Equal(p.Finding.Pods.Since) || got[0].Ends.Before(now.Add(alertLasts)) || got[0].Labels["severity"] != "warning" {
		t.Fatalf("%+v", got)
	}

	silence, err := json.Marshal(map[string]any{"matchers": []any{map[string]any{"name": "incident", "value": incidentID, "isRegex": false}}, "startsAt": now, "endsAt": now.Add(time.Hour), "createdBy": "ada", "comment": "known"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(address+"/api/v2/silences", "application/json", strings.NewReader(string(silence)))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != 200 {
		t.Fatal(answer.Status)
	}
	if got := until(t, address, func(a gotAlert) bool { return a.Status.State == "suppressed" }); len(got.Status.SilencedBy) != 1 {
		t.Errorf("%+v", got)
	}

	other := p // another incident is not silenced, and its end is heard of
	other.Incident = "gpu-fedcba9876"
	tell(t, n, other)
	if got := hear(t, heard); !strings.Contains(got, `"incident":"gpu-fedcba9876"`) || strings.Contains(got, incidentID) {
		t.Errorf("%s", got)
	}
	tell(t, n, resolved(other))
	if got := hear(t, heard); !strings.Contains(got, `"status":"resolved"`) || !strings.Contains(got, `"summary":"✔ Resolved: `+p.Finding.Headline) {
		t.Errorf("%s", got)
	}
}

func tell(t *testing.T, n notice.Notifier, p notice.Proposal) {
	t.Helper()
	if err := n.Notify(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, heard <-chan string) string {
	t.Helper()
	select {
	case got := <-heard:
		return got
	case <-time.After(time.Minute):
		t.Fatal("nothing is heard")
		return ""
	}
}

type gotAlert struct {
	Labels map[string]string
	Starts time.Time `json:"startsAt"`
	Ends   time.Time `json:"endsAt"`
	Status struct {
		State      string
		SilencedBy []string
	}
}

func alerts(t *testing.T, address string) (all []gotAlert) {
	t.Helper()
	answer, err := http.Get(address + "/api/v2/alerts")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// until polls until the one alert is so.
func until(t *testing.T, address string, is func(gotAlert) bool) gotAlert {
	t.Helper()
	tick, patience := time.NewTicker(50*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		all := alerts(t, address)
		if len(all) == 1 && is(all[0]) {
			return all[0]
		}
		select {
		case <-patience:
			t.Fatalf("%+v", all)
		case <-tick.C:
		}
	}
}
