package service

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/watcher/incident"
)

// slow is a Slack that takes its time, and knows how much of it was its own.
type slow struct {
	*httptest.Server
	mu       sync.Mutex
	own      time.Duration
	accepted chan time.Time // of each message that was posted or edited
}

// answersIn is what this Slack takes for each answer.
const answersIn = 50 * time.Millisecond

func newSlow(b *testing.B, channel *fakeslack.Server) *slow {
	b.Helper()
	to, err := url.Parse(channel.URL())
	must(b, err)
	s := &slow{accepted: make(chan time.Time, 100)}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		proxy.ServeHTTP(w, r)
		<-time.After(answersIn)
		s.mu.Lock()
		s.own += time.Since(began)
		s.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "chat.postMessage") || strings.HasSuffix(r.URL.Path, "chat.update") {
			s.accepted <- time.Now()
		}
	}))
	b.Cleanup(s.Close)
	return s
}

// spent is its own time since it was asked last.
func (s *slow) spent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.own
	s.own = 0
	return was
}

// BenchmarkToldInSlack is how long it takes from a diagnosis that is published on an embedded
// NATS to Slack's having accepted the message, beyond Slack's own answers: the first is posted,
// the others are edits. Slack takes a message a second in a channel; that wait is before each.
func BenchmarkToldInSlack(b *testing.B) {
	queue, err := bus.Open(b.Context(), bus.Options{Cluster: "here", StoreDir: b.TempDir()})
	must(b, err)
	defer queue.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	slack := newSlow(b, channel)
	s, _ := teller(b, queue, channel, remediations())
	s.slackURL = slack.URL + "/api/"
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- s.tellPeople(ctx) }()
	d := diagnosis.Diagnosis{Incident: toldOf, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Pods: diagnosis.WaitingPods{Waiting: 1, Since: time.Now()},
		Causes: []diagnosis.Cause{{ID: diagnosis.MIGFull, Certainty: diagnosis.Proven, Says: "it is full"}}}
	tell := func(n int) time.Duration {
		slack.spent()
		d.Headline = fmt.Sprintf("ml/training waits: %d", n)
		began := time.Now()
		publish(b, queue, d)
		return (<-slack.accepted).Sub(began) - slack.spent()
	}
	tell(0)
	<-slack.accepted // its details, in the thread
	var all []time.Duration
	for n := 1; b.Loop(); n++ {
		b.StopTimer()
		<-time.After(1100 * time.Millisecond) // the channel's pace
		b.StartTimer()
		all = append(all, tell(n))
	}
	cancel()
	must(b, <-done)
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	if wrong := channel.Complaints(); len(wrong) > 0 {
		b.Errorf("%v", wrong)
	}
}
