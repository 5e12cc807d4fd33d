package service

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/parts"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// model words one thing, once it may.
type model struct {
	*httptest.Server
	asked atomic.Int32
	may   chan struct{}
	code  atomic.Int32
}

func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{may: make(chan struct{})}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		select {
		case <-m.may:
		case <-r.Context().Done():
			return
		}
		if code := int(m.code.Load()); code != 0 || r.Header.Get("Authorization") != "Bearer key-canary" || r.URL.Path != "/v1/chat/completions" {
			w.WriteHeader(max(code, http.StatusBadRequest))
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{ //nolint:errcheck // the test would say
			"content": `{"claims":[{"text":"Every GPU is full.","evidence_ids":["E3"],"quote":"every GPU is full"}]}`}}}})
	}))
	t.Cleanup(m.Close)
	return m
}

// worder has a teller word what it tells.
func worder(t *testing.T, s *Service, m *model) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(key, []byte("key-canary\n"), 0o600))
	s.config.Narrate.URL, s.config.Narrate.Model, s.config.Narrate.KeyFile = m.URL+"/v1", "small", key
	s.config.Outbound.Allow = []string{"127.0.0.1"}
}

// tellsAndWords runs both until what is told is so.
func tellsAndWords(t *testing.T, s *Service, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p, running := parts.New(ctx)
	p.Begin("tell", func() error { return s.tellPeople(running) })
	p.Begin("word", func() error { return s.wordFindings(running) })
	controlplane.Eventually(t, time.Minute, what, func() (bool, string) { return is(), "" })
	cancel()
	must(t, p.Wait())
}

// A finding is told at once, and edited when a model has worded it; who starts again asks the
// model nothing, and what is found next is told without the words of before.
func TestWordsComeLater(t *testing.T) {
	t.Parallel() // it waits
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	m := newModel(t)
	d := diagnosis.Diagnosis{Incident: toldOf, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Pods: diagnosis.WaitingPods{Waiting: 1, Since: time.Now()}, Headline: "ml/training waits: needs a 2g",
		Causes: []diagnosis.Cause{{ID: diagnosis.MIGFull, Certainty: diagnosis.Proven, Says: "every GPU is full"}}}
	publish(t, b, d)
	s, log := teller(t, b, channel, remediations())
	worder(t, s, m)
	shown := func() string {
		if all := channel.Messages(""); len(all) == 1 {
			return all[0].Shown()
		}
		return ""
	}
	told := false
	const words = "In the words of a model (small), which decides nothing\n│ Every GPU is full. [MIGFull]\n"
	tellsAndWords(t, s, "the words", func() bool {
		if is := shown(); !told && strings.Contains(is, "needs a 2g") && m.asked.Load() == 1 {
			if told = true; strings.Contains(is, "In the words") {
				t.Error("it was worded before the model was asked")
			}
			close(m.may) // the finding has not waited for it
		}
		return told && strings.Contains(shown(), words)
	})
	s, _ = teller(t, b, channel, remediations())
	worder(t, s, m)
	tellsAndWords(t, s, "the same again", func() bool { return strings.Contains(shown(), words) })
	if n := m.asked.Load(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	m.code.Store(http.StatusUnauthorized)
	d.Headline = "ml/training waits: needs a 3g"
	publish(t, b, d)
	s, log = teller(t, b, channel, remediations())
	worder(t, s, m)
	tellsAndWords(t, s, "what is found next", func() bool {
		return m.asked.Load() == 2 && strings.Contains(shown(), "needs a 3g") && strings.Contains(log.String(), "without a model's words")
	})
	if is := shown(); strings.Contains(is, "In the words") {
		t.Errorf("the words of before are shown: %s", is)
	}
	if strings.Contains(log.String(), "key-canary") || strings.Count(log.String(), "without a model's words") != 1 || !strings.Contains(log.String(), "the server says 401") {
		t.Errorf("the log says %s", log)
	}
}

// What nobody waits for any more is not worded, and without a model nobody is asked.
func TestNotWorded(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	m := newModel(t)
	close(m.may)
	for id, resolved := range map[string]bool{"gpu-aaaaaaaaaa": true, "gpu-bbbbbbbbbb": false} {
		must(t, publishIncident(b)(t.Context(), incident.Incident{ID: id, Resolved: resolved, Newest: "9"}))
		publish(t, b, diagnosis.Diagnosis{Incident: id, Headline: id + " waits", Pods: diagnosis.WaitingPods{Since: time.Now()}, Causes: []diagnosis.Cause{{ID: diagnosis.MIGFull, Says: "every GPU is full"}}})
	}
	s, _ := teller(t, b, channel, remediations())
	must(t, s.wordFindings(t.Context()))
	worder(t, s, m)
	tellsAndWords(t, s, "the one that waits", func() bool {
		all := channel.Messages("")
		return len(all) == 1 && strings.Contains(all[0].Shown(), "gpu-bbbbbbbbbb waits") && strings.Contains(all[0].Shown(), "│ Every GPU is full.")
	})
	if n := m.asked.Load(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	for place, want := range map[string]bool{"slack": true, "jira": true, settings.OnPage: true, "webhook": false, "pagerduty": false} {
		p, err := (&sink{Service: s, name: place, place: place, plans: map[string]notice.Notice{}}).proposal(t.Context(), "gpu-bbbbbbbbbb")
		must(t, err)
		if (p.Wording != nil) != want {
			t.Errorf("%s is told it in a model's words: %v", place, p.Wording != nil)
		}
	}
}

// A model that may not be asked, or not without a key, is said with the key of the configuration.
func TestModelThatCannotBeAsked(t *testing.T) {
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	for want, edit := range map[string]func(*Service){
		"narrate.url: http://127.0.0.1:":   func(s *Service) { s.config.Outbound.Allow = nil },
		"narrate.keyFile: open /nowhere:":  func(s *Service) { s.config.Narrate.KeyFile = "/nowhere" },
		"narrate.keyFile: it holds no key": func(s *Service) { must(t, os.WriteFile(s.config.Narrate.KeyFile, nil, 0o600)) },
	} {
		s, _ := teller(t, nil, channel, remediations())
		worder(t, s, newModel(t))
		edit(s)
		if err := s.wordFindings(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
