package service

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/service/lead"
	"github.com/unpend/unpend/rca/fairqueue"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/webhook"
)

// The incidents of the pods that a call names are looked at, and no others; of one that does
// not name all its pods it may be any.
func TestLookNow(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	of := func(id, namespace string, waiting int, resolved bool, pods ...string) {
		i := incident.Incident{ID: id, Workload: incident.Ref{Kind: "Job", Namespace: namespace, Name: "x"}, Waiting: waiting, Resolved: resolved, Newest: "1"}
		for _, p := range pods {
			i.Pods = append(i.Pods, incident.PodRef{Name: p})
		}
		must(t, publishIncident(b)(t.Context(), i))
	}
	of("gpu-aaaaaaaaaa", "ml", 1, false, "train-0")
	of("gpu-bbbbbbbbbb", "ml", 1, false, "train-1")
	of("gpu-cccccccccc", "other", 1, false, "train-0")
	of("gpu-dddddddddd", "ml", 0, true, "train-0")
	of("gpu-eeeeeeeeee", "big", 900, false, "pod-1")
	s := &Service{bus: b}
	var put []string
	look := s.lookNow(func(i incident.Incident) { put = append(put, i.ID) })
	must(t, look(t.Context(), []webhook.Pod{{Namespace: "ml", Name: "train-0"}, {Namespace: "big", Name: "pod-777"}, {Namespace: "ml", Name: "unknown"}}))
	if slices.Sort(put); fmt.Sprint(put) != "[gpu-aaaaaaaaaa gpu-eeeeeeeeee]" {
		t.Error(put)
	}
	s.lead = &lead.Lead{}
	if err := look(t.Context(), nil); err == nil || err.Error() != "another process is the one that diagnoses" {
		t.Error(err)
	}
}

// A call of an Alertmanager has the incident diagnosed; without the token it has not.
func TestHooksDiagnose(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	must(t, publishIncident(b)(t.Context(), incident.Incident{ID: toldOf, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "x"}, Waiting: 1, Pods: []incident.PodRef{{Name: "train-0"}}, Newest: "1"}))
	diagnosed := make(chan string, 10)
	registry := prometheus.NewRegistry()
	q, err := fairqueue.New(fairqueue.Options{Registerer: registry, Now: time.Now, GiveUp: func(context.Context, incident.Incident, error) {}, Diagnose: func(_ context.Context, i incident.Incident, _ time.Time) (bool, error) {
		diagnosed <- i.ID
		return false, nil
	}})
	must(t, err)
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte("let-me-in\n"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	must(t, l.Close())
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	s, _ := teller(t, b, channel, remediations())
	s.config.Hooks.Listen, s.config.Hooks.TokenFile = address, token
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { q.Run(ctx); done <- nil }()
	go func() { done <- s.hooks(ctx, q) }()
	call := func(token string) (code int) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/hooks/alertmanager", strings.NewReader(`{"alerts":[{"status":"firing","labels":{"namespace":"ml","pod":"train-0"},"fingerprint":"f"}]}`))
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0
		}
		a.Body.Close()
		return a.StatusCode
	}
	controlplane.Eventually(t, time.Minute, "the hook", func() (bool, string) { return call("wrong") == 401, "" })
	if got := call("let-me-in"); got != 202 {
		t.Errorf("%d", got)
	}
	select {
	case got := <-diagnosed:
		if got != toldOf {
			t.Error(got)
		}
	case <-time.After(time.Minute):
		t.Error("nothing was diagnosed")
	}
	cancel()
	for range 2 {
		must(t, <-done)
	}
	if len(diagnosed) != 0 {
		t.Errorf("%d more", len(diagnosed))
	}
	s.config.Hooks.TokenFile = ""
	if err := s.hooks(t.Context(), q); err == nil || !strings.Contains(err.Error(), "anybody could call") {
		t.Error(err)
	}
}
