package service

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/paging"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/watcher/incident"
)

const pagerKey = "0123456789abcdef0123456789abcdef"

// pagerDuty is one that says what it was told, and can be away.
type pagerDuty struct {
	*httptest.Server
	mu    sync.Mutex
	away  bool
	said  []string // "trigger key"
	by    []string // "routing-key incident"
	tried int
	known func(key string) bool // nil: every key is
}

func newPagerDuty(t *testing.T) *pagerDuty {
	t.Helper()
	p := &pagerDuty{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			Action string `json:"event_action"`
			Key    string `json:"dedup_key"`
			By     string `json:"routing_key"`
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.tried++
		if json.NewDecoder(r.Body).Decode(&e) != nil || p.away {
			w.WriteHeader(503)
			return
		}
		if p.known != nil && !p.known(e.By) {
			w.WriteHeader(400)
			io.WriteString(w, `{"status":"invalid event","message":"Event object is invalid","errors":["Invalid routing key"]}`)
			return
		}
		if e.Key == paging.CheckKey { // of no alert
			p.tried--
			w.WriteHeader(202)
			json.NewEncoder(w).Encode(map[string]string{"status": "success", "dedup_key": e.Key})
			return
		}
		p.said = append(p.said, e.Action+" "+e.Key)
		p.by = append(p.by, e.By+" "+strings.TrimSuffix(e.Key, ".01234567"))
		w.WriteHeader(202)
		json.NewEncoder(w).Encode(map[string]string{"status": "success", "dedup_key": e.Key})
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *pagerDuty) set(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

func (p *pagerDuty) story() (string, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.said, ", "), p.tried
}

// keys are which service was told of what.
func (p *pagerDuty) keys() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.by)
	return strings.Join(p.by, ", ")
}

// pagedBy has a service page there, beside its channel.
func pagedBy(t *testing.T, s *Service, p *pagerDuty) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(key, []byte(pagerKey+"\n"), 0o600))
	s.config.PagerDuty.KeyFile, s.config.PagerDuty.URL = key, p.URL
	s.config.Outbound.Allow = []string{"127.0.0.1"}
}

// breaker writes its state, as the executor does.
func breaker(t *testing.T, client kubernetes.Interface, data map[string]string) {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "unpend", Name: "unpend-breaker"}, Data: data}
	maps := client.CoreV1().ConfigMaps("unpend")
	if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		_, err = maps.Create(t.Context(), m, metav1.CreateOptions{})
		must(t, err)
	}
}

// A key that PagerDuty does not know pages nobody: that is told before there is anything to
// page for, in /readyz, which `unpend status` shows, and in the log, once, without the key.
func TestPagerDutyIsLookedAtFirst(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel, pager := fakeslack.New(time.Now), newPagerDuty(t)
	defer channel.Close()
	pager.known = func(key string) bool { return key != pagerKey }
	s, log := teller(t, b, channel, remediations())
	pagedBy(t, s, pager)
	const why = "pagerduty.keyFile holds no key of an integration of Events API v2: resolve in PagerDuty: the answer is 400 Bad Request"
	tells(t, s, "that nobody is paged", func() bool {
		w := httptest.NewRecorder()
		s.ready.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
		_, tried := pager.story()
		return tried > 1 && strings.HasPrefix(w.Body.String(), "ok\npagerduty is not told since ") && strings.Contains(w.Body.String(), why)
	})
	if got := log.String(); strings.Count(got, why) != 1 || strings.Contains(got, pagerKey) {
		t.Errorf("the log says %s", got)
	}
}

// Somebody is paged for a node that was left cordoned and for the breaker, of which no
// finding says anything; the page ends when the node is given back and the breaker closed.
// Of a finding people are told in the channel alone.
func TestSomebodyIsPaged(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel, pager := fakeslack.New(time.Now), newPagerDuty(t)
	defer channel.Close()
	s, _ := teller(t, b, channel, remediations())
	client := s.client
	again := func() *Service {
		s, _ := teller(t, b, channel, remediations())
		s.client, s.config.Remediate.Namespace = client, "unpend"
		pagedBy(t, s, pager)
		return s
	}
	mark, err := (&diagnosis.Operation{ID: "a", Parked: "MIG manager says failed"}).Annotation()
	must(t, err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Annotations: map[string]string{diagnosis.OperationAnnotation: mark}}, Spec: corev1.NodeSpec{Unschedulable: true}}
	_, err = client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	must(t, err)
	publish(t, b, diagnosis.Diagnosis{Incident: toldOf, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Pods: diagnosis.WaitingPods{Waiting: 1, Since: time.Now().Add(-time.Hour)}, Headline: "ml/training waits"})
	tells(t, again(), "the finding", func() bool { return len(channel.Messages("")) == 1 })
	if got, tried := pager.story(); tried != 0 {
		t.Errorf("a finding is worth no page: %s", got)
	}

	n := notice.Notice{What: notice.Parked, Incident: toldOf, Plan: strings.Repeat("a", 64), Title: "repartition gpu-1", Node: "gpu-1", Reason: "MIG manager says failed", Since: time.Now()}
	must(t, notices{func(context.Context) (*bus.Bus, error) { return b, nil }}.publish(t.Context(), n))
	story := func(want string) func() bool {
		return func() bool {
			got, _ := pager.story()
			return got == want
		}
	}
	parked := "trigger " + toldOf + ".01234567"
	tells(t, again(), "the parked node", story(parked))
	breaker(t, client, map[string]string{"open": "true", "since": "2026-11-22T12:00:00Z", "why": "3 of 10 GPU nodes went out of use"})
	open := parked + ", trigger breaker.01234567"
	tells(t, again(), "the breaker", story(open))
	node.Annotations = nil
	_, err = client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	must(t, err)
	breaker(t, client, map[string]string{"open": "false", "resetAt": "2026-11-22T13:00:00Z"})
	tells(t, again(), "that both are over", func() bool {
		got, _ := pager.story()
		return strings.HasPrefix(got, open+", ") && strings.Contains(got, "resolve breaker.01234567") && strings.Contains(got, "resolve "+toldOf+".01234567")
	})
	_, before := pager.story()
	tells(t, again(), "nothing more", func() bool { return len(channel.Messages("")) == 1 })
	if got, tried := pager.story(); tried != before || before != 4 {
		t.Errorf("%d requests: %s", tried, got)
	}
}

// A pager that is away holds up no other place; back again it is told in order, and of
// nothing twice (R25).
func pagerAway(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel, pager := fakeslack.New(time.Now), newPagerDuty(t)
	defer channel.Close()
	s, log := teller(t, b, channel, remediations())
	pagedBy(t, s, pager)
	everything := true
	s.config.PagerDuty.When.Everything = &everything
	pager.set(true)
	ids := []string{"gpu-aaaaaaaaaa", "gpu-bbbbbbbbbb", "gpu-cccccccccc"}
	for _, id := range ids {
		publish(t, b, diagnosis.Diagnosis{Incident: id, Headline: id + " waits", Pods: diagnosis.WaitingPods{Since: time.Now()}})
	}
	told := func() bool { return len(channel.Messages("")) == len(ids) }
	var want []string
	for _, id := range ids {
		want = append(want, "trigger "+id+".01234567")
	}
	tells(t, s, "all in the channel, then all on the pager", func() bool {
		got, tried := pager.story()
		if told() && tried > 0 {
			if got != "" {
				return got == strings.Join(want, ", ")
			}
			pager.set(false)
		}
		return false
	})
	if strings.Contains(log.String(), pagerKey) {
		t.Errorf("the log has the key: %s", log)
	}
}

// Routes say where people are told of what, the first that fits; a place that has told goes
// on telling although the routes have changed, and what none fits is told everywhere.
func TestRoutes(t *testing.T) {
	t.Parallel() // it waits
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel, pager := fakeslack.New(time.Now), newPagerDuty(t)
	defer channel.Close()
	again := func(routes ...settings.Route) *Service {
		s, _ := teller(t, b, channel, remediations())
		pagedBy(t, s, pager)
		everything := true
		s.config.PagerDuty.When.Everything, s.config.Routes = &everything, routes
		return s
	}
	of := func(id, namespace, cause string, words string) {
		publish(t, b, diagnosis.Diagnosis{Incident: id, Workload: incident.Ref{Kind: "Job", Namespace: namespace, Name: "x"}, Headline: words, Pods: diagnosis.WaitingPods{Waiting: 1, Since: time.Now()}, Causes: []diagnosis.Cause{{ID: diagnosis.CauseID(cause), Certainty: diagnosis.Proven, Says: "because"}}})
	}
	of("gpu-dddddddddd", "other", "Unknown", "d waits") // first: who is told of the others has passed over these
	of("gpu-eeeeeeeeee", "team-a", "Unknown", "e waits")
	of("gpu-aaaaaaaaaa", "team-a", "MIGFull", "a waits")
	of("gpu-bbbbbbbbbb", "team-b", "MIGFull", "b waits")
	of("gpu-cccccccccc", "other", "MIGFull", "c waits")
	pages := func() string {
		got, _ := pager.story()
		all := strings.Split(got, ", ")
		slices.Sort(all)
		return strings.ReplaceAll(strings.ReplaceAll(strings.Join(all, " "), ".01234567", ""), "trigger gpu-", "")
	}
	shown := func() string {
		var out []string
		for _, m := range channel.Messages("") {
			out = append(out, m.Text)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	tells(t, again(settings.Route{Namespaces: []string{"team-b"}, To: []string{"pagerduty"}}, settings.Route{Namespaces: []string{"team-*"}, Causes: []string{"MIGFull"}, To: []string{"slack"}}, settings.Route{Causes: []string{"Unknown"}}), "each where it belongs", func() bool {
		return pages() == "bbbbbbbbbb cccccccccc" && shown() == "a waits c waits"
	})
	of("gpu-aaaaaaaaaa", "team-a", "MIGFull", "a waits longer")
	of("gpu-bbbbbbbbbb", "team-b", "MIGFull", "b waits longer")
	of("gpu-ffffffffff", "team-a", "MIGFull", "f waits")
	tells(t, again(settings.Route{Namespaces: []string{"team-*"}, To: []string{"pagerduty"}}), "where it was told before, too", func() bool {
		return pages() == "aaaaaaaaaa bbbbbbbbbb bbbbbbbbbb cccccccccc ffffffffff" && shown() == "a waits longer c waits"
	})
}

// An address that may not be spoken to is said when the service starts.
func TestPagesWhereNobodyMaySpeak(t *testing.T) {
	channel, pager := fakeslack.New(time.Now), newPagerDuty(t)
	defer channel.Close()
	s, _ := teller(t, nil, channel, remediations())
	pagedBy(t, s, pager)
	s.config.Outbound.Allow = nil
	if err := s.tellPeople(t.Context()); err == nil || !strings.Contains(err.Error(), "pagerduty.url: "+pager.URL+" may not be spoken to without TLS") {
		t.Error(err)
	}
}
