package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// Two thousand nodes, half of them with two taints, made a message above NATS's limit, and
// the diagnosis vanished. It arrives, with every node counted, and is printed the same.
func TestDiagnosisOfManyNodesArrives(t *testing.T) {
	fleet := rcatest.MakeFleet(2000, 1, 1, 1, time.Now())
	for i, n := range fleet.Nodes {
		for _, key := range []string{"team", "maintenance"}[:2*(i%2)] {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: "x", Effect: corev1.TaintEffectNoSchedule})
		}
	}
	data, err := fleet.List()
	must(t, err)
	st, err := dump.Read([]string{"-"}, bytes.NewReader(data))
	must(t, err)
	found, err := rca.Diagnose(t.Context(), st, rca.Options{})
	must(t, err)
	if len(found) != 1 || len(found[0].Nodes) != 2000 {
		t.Fatalf("%d incidents", len(found))
	}
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	var printed strings.Builder
	p := &publisher{Service: &Service{bus: b, out: &printed, logger: slog.New(slog.DiscardHandler)}}
	d := found[0]
	_, err = p.publish(t.Context(), d, said{}, said{waiting: 1})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []byte
	must(t, b.Consume(ctx, bus.Diagnoses, "test", func(_ context.Context, key string, body []byte) error {
		defer cancel()
		if got = body; key != d.Incident {
			return fmt.Errorf("its key is %s", key)
		}
		return nil
	}))
	var summary diagnosis.Summary
	must(t, json.Unmarshal(got, &summary))
	counted := 0
	for _, g := range summary.Nodes {
		counted += g.Count
	}
	whole, err := json.Marshal(d)
	must(t, err)
	t.Logf("%d bytes whole, %d travel", len(whole), len(got))
	if counted != 2000 || summary.NodeCount != 2000 || summary.Causes[0].ID != d.Causes[0].ID || summary.Incident != d.Incident || len(got) > 32<<10 {
		t.Errorf("%d bytes, %d nodes: %.400s", len(got), counted, got)
	}
	if printed.String() != string(got)+"\n" {
		t.Errorf("printed %.400s", printed.String())
	}
}

// A process that led, lost the lease and leads again does not print what it has said already;
// one that is new prints it, though it is on the bus, and so does one that had forgotten it.
// News it is where its substance is, to the bus as to the process.
func TestALineIsPrintedOnceAProcess(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	d, now := diagnosis.Diagnosis{Incident: "gpu-0123456789"}, said{[32]byte{1}, 1}
	process := func() (*publisher, *strings.Builder) {
		var out strings.Builder
		return &publisher{Service: &Service{bus: b, out: &out, logger: slog.New(slog.DiscardHandler)}, last: map[string]said{}, earlier: map[string]said{}}, &out
	}
	says := func(p *publisher, now said, isNews bool) {
		t.Helper()
		last, earlier, known := p.look(d.Incident)
		if !known {
			last = earlier
		}
		news, err := p.publish(t.Context(), d, last, now)
		must(t, err)
		if p.note(d.Incident, now); news != isNews {
			t.Errorf("%v is news: %v", now, news)
		}
	}
	p, out := process()
	says(p, now, true)
	for range 2 { // the second term is over before the incident's turn has come
		p.begin(t.Context())
	}
	says(p, now, false)
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, out)
	}
	p.begin(t.Context())
	says(p, said{[32]byte{1}, 2}, false)
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("of other pods there are %d lines: %s", n, out)
	}
	p.forget(d.Incident)
	p.begin(t.Context())
	says(p, said{[32]byte{1}, 2}, false)
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("what was forgotten makes %d lines: %s", n, out)
	}
	other, printed := process()
	says(other, said{[32]byte{1}, 3}, false)
	says(other, said{[32]byte{2}, 3}, true)
	if n := strings.Count(printed.String(), "\n"); n != 2 {
		t.Errorf("another process prints %d lines", n)
	}
}

// An incident may be told of as over while it is looked at in a copy of the cluster that does
// not know that yet: what would be said of it is not, and not remembered.
func TestWhatIsOverMeanwhileIsNotTold(t *testing.T) {
	p := &publisher{last: map[string]said{}, earlier: map[string]said{}}
	if p.look("a"); p.over() {
		t.Error("over before anybody said so")
	}
	if p.forget("b"); p.over() {
		t.Error("over because another is")
	}
	p.forget("a")
	if p.note("a", said{waiting: 1}); !p.over() || len(p.last) != 0 {
		t.Errorf("over %v, %v is remembered", p.over(), p.last)
	}
	p.look("a")
	if p.note("a", said{waiting: 1}); p.over() || len(p.last) != 1 {
		t.Errorf("over %v, %v is remembered", p.over(), p.last)
	}
}
