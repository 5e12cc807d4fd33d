package notifytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/watcher/incident"
)

// Run holds an adapter to the contract of notice.Notifier. Each case gets a vendor of its
// own.
func Run(t *testing.T, service func(*testing.T, *Clock) Service) {
	for name, check := range map[string]func(*testing.T, *suite){
		"posts once":                         postsOnce,
		"edits":                              edits,
		"waits as it is told":                waits,
		"does not repeat what is refused":    refuses,
		"says who does not let it in":        locked,
		"does not repeat what got lost":      lost,
		"goes on after a restart":            restarts,
		"a restart while an answer is lost":  restartsInBetween,
		"ends with its context":              ends,
		"catches up in order":                catchesUp,
		"people see the newest after a stop": newest,
		"says how a fix turned out here":     turnedOut,
	} {
		t.Run(name, func(t *testing.T) { check(t, begin(service, t)) })
	}
}

// Finding is a small finding of an incident, with a headline that tells it from others.
func Finding(incidentID, headline string) notice.Proposal {
	since := time.Date(2026, 11, 22, 13, 48, 0, 0, time.UTC)
	return notice.Proposal{Incident: incidentID, Read: since.Add(14 * time.Minute), Finding: &diagnosis.Summary{Incident: incidentID, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"},
		Pods: diagnosis.WaitingPods{Waiting: 1, Names: []string{"training-0"}, Since: since}, Requests: map[string]string{"nvidia.com/mig-2g.10gb": "1"}, Headline: headline,
		Causes: []diagnosis.CauseSummary{{ID: diagnosis.MIGLayoutMismatch, Certainty: diagnosis.Proven, Says: "not laid out with 2g.10gb", Nodes: []string{"gpu-1"}, NodeCount: 1}},
		Nodes:  []diagnosis.NodeGroup{{Names: []string{"gpu-1"}, Count: 1, Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Reason: "Insufficient nvidia.com/mig-2g.10gb", Cause: diagnosis.MIGLayoutMismatch}}}}, NodeCount: 1}}
}

// words are what has to stand in the message of a proposal.
func words(p notice.Proposal) string {
	if p.Finding == nil {
		return ""
	}
	return p.Finding.Headline
}

const (
	a = "gpu-aaaaaaaaaa"
	b = "gpu-bbbbbbbbbb"
	c = "gpu-cccccccccc"
)

func postsOnce(t *testing.T, s *suite) {
	n, p := s.process(t), Finding(a, "waits for a 2g")
	s.told(t, n, p)
	once := s.Writes()
	s.told(t, n, p)
	s.told(t, n, p)
	if s.Writes() != once {
		t.Errorf("%d requests that write, and %d after the same was told again", once, s.Writes())
	}
	s.sees(t, p)
}

func edits(t *testing.T, s *suite) {
	n, first, second := s.process(t), Finding(a, "waits for a 2g"), Finding(a, "waits for a 3g")
	s.told(t, n, first)
	s.told(t, n, second)
	s.sees(t, second)
	other := Finding(b, "another waits")
	s.told(t, n, other)
	s.told(t, n, first)
	s.sees(t, first, other)
}

// waits: what passes is tried again, and not before the vendor wants.
func waits(t *testing.T, s *suite) {
	n := s.process(t)
	const hint = 17 * time.Second
	for i, f := range []Fault{{Kind: TooMany, After: hint}, {Kind: Broken}, {Kind: Soft}, {Kind: LostIn}} {
		id, before := fmt.Sprintf("gpu-%010x", i), s.clock.Now()
		s.Fail(f, f)
		s.told(t, n, Finding(id, "waits "+string(f.Kind)))
		if f.After > 0 && s.clock.Now().Sub(before) < 2*f.After {
			t.Errorf("it was to wait twice %s, and waited %s in all", f.After, s.clock.Now().Sub(before))
		}
		if s.clock.Now().Equal(before) {
			t.Errorf("%s: tried again at once", f.Kind)
		}
		if got := s.Messages(); len(got) != i+1 || got[i].Incident != id {
			t.Fatalf("%s: %+v", f.Kind, got)
		}
	}
	if s.clock.longest() < hint {
		t.Errorf("the longest wait was %s", s.clock.longest())
	}
}

func refuses(t *testing.T, s *suite) {
	n, p := s.process(t), Finding(a, "waits for a 2g")
	s.Fail(Fault{Kind: Bad})
	if err := s.notify(t, n, p); !refused(err) {
		t.Errorf("refused, and says %v", err)
	}
	if s.Writes() != 1 {
		t.Errorf("%d requests that write, want 1", s.Writes())
	}
	s.sees(t)
	other := Finding(b, "another waits")
	s.told(t, n, other)
	s.told(t, n, p)
	s.sees(t, other, p)
}

// locked: credentials that are not taken are no fault of the proposal.
func locked(t *testing.T, s *suite) {
	n, p := s.process(t), Finding(a, "waits for a 2g")
	s.Fail(Fault{Kind: BadToken})
	if err := s.notify(t, n, p); err == nil || refused(err) {
		t.Errorf("not let in, and says %v", err)
	}
	if s.Writes() != 1 {
		t.Errorf("%d requests that write, want 1", s.Writes())
	}
	s.told(t, n, p)
	s.sees(t, p)
}

func lost(t *testing.T, s *suite) {
	n, p, second := s.process(t), Finding(a, "waits for a 2g"), Finding(a, "waits for a 3g")
	s.Fail(Fault{Kind: LostOut})
	s.told(t, n, p)
	s.sees(t, p)
	s.Fail(Fault{Kind: LostOut})
	s.told(t, n, second)
	s.sees(t, second)
}

func restarts(t *testing.T, s *suite) {
	p, second := Finding(a, "waits for a 2g"), Finding(a, "waits for a 3g")
	s.told(t, s.process(t), p)
	once := s.Writes()
	s.told(t, s.process(t), p)
	if s.Writes() != once {
		t.Errorf("%d requests that write, and %d after a restart", once, s.Writes())
	}
	s.told(t, s.process(t), second)
	s.sees(t, second)
}

// restartsInBetween: the process ends before it hears that its message was taken.
func restartsInBetween(t *testing.T, s *suite) {
	p := Finding(a, "waits for a 2g")
	s.Fail(Fault{Kind: LostOut}, Fault{Kind: Hangs})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_ = s.process(t).Notify(ctx, p) // it may have found its message by then
	s.Fail()
	s.told(t, s.process(t), p)
	s.sees(t, p)
}

func ends(t *testing.T, s *suite) {
	n := s.process(t)
	s.Fail(Fault{Kind: Hangs})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- n.Notify(ctx, Finding(a, "waits")) }()
	select {
	case err := <-done:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end with its context")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	before := s.Writes()
	if err := n.Notify(gone, Finding(b, "waits")); !errors.Is(err, context.Canceled) || s.Writes() != before {
		t.Errorf("with a context that had ended: %v, %d requests", err, s.Writes()-before)
	}
}

// catchesUp: during an outage every call fails in the end; afterwards the newest of each
// is told, in the order in which it is called.
func catchesUp(t *testing.T, s *suite) {
	n := s.process(t)
	s.Fail(slices.Repeat([]Fault{{Kind: Broken}}, 1000)...)
	for _, id := range []string{a, b, c} {
		if err := s.notify(t, n, Finding(id, "waits")); err == nil || refused(err) {
			t.Errorf("an outage, and it says %v", err)
		}
	}
	s.sees(t)
	s.Fail()
	want := []notice.Proposal{Finding(a, "waits longer"), Finding(b, "waits too"), Finding(c, "and waits")}
	for _, p := range want {
		s.told(t, n, p)
	}
	s.sees(t, want...)
}

// newest: what a process that had to stop could not tell is told by the next.
func newest(t *testing.T, s *suite) {
	first, second := Finding(a, "waits for a 2g"), Finding(a, "waits for a 3g")
	s.told(t, s.process(t), first)
	s.Fail(slices.Repeat([]Fault{{Kind: Broken}}, 1000)...)
	if err := s.notify(t, s.process(t), second); err == nil {
		t.Error("an outage, and nothing is said of it")
	}
	s.sees(t, first)
	s.Fail()
	s.told(t, s.process(t), second)
	s.sees(t, second)
}

// turnedOut: beside a fix stands how often its kind has helped here before.
func turnedOut(t *testing.T, s *suite) {
	p, record := Finding(a, "waits for a 2g"), diagnosis.Record{Worked: 4, Of: 5, Minutes: 3}
	p.Finding.Fixes = []diagnosis.FixSummary{{ID: 1, Kind: diagnosis.RepartitionGPU, Title: "repartition gpu-1", Risk: diagnosis.LowRisk, Proof: diagnosis.Proof{Verdict: "schedules", Why: "the filters accept gpu-1"}, Record: &record}}
	s.told(t, s.process(t), p)
	s.sees(t, p)
	if got := s.Messages()[0].Text; !strings.Contains(got, record.String()) {
		t.Errorf("nobody reads that it %s:\n%s", record, got)
	}
}
