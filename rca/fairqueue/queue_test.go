package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/watcher/incident"
)

// played is a queue that works, in a bubble of its own time, and what it did.
type played struct {
	*Queue
	looked  []string // incidents, in order
	at      []time.Duration
	read    []time.Duration // what they are told from is no older
	gaveUp  []string
	takes   time.Duration
	news    func(incident.Incident) (bool, error)
	perhaps func(*Options)
}

func (p *played) run(t *testing.T, script func(p *played)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		opts := Options{Now: time.Now, Registerer: prometheus.NewRegistry(),
			Diagnose: func(_ context.Context, i incident.Incident, read time.Time) (bool, error) {
				p.read = append(p.read, read.Sub(began).Round(time.Millisecond))
				p.looked, p.at = append(p.looked, i.ID), append(p.at, time.Since(began).Round(time.Millisecond))
				time.Sleep(p.takes) // the bubble's time
				if p.news == nil {
					return true, nil
				}
				return p.news(i)
			},
			GiveUp: func(_ context.Context, i incident.Incident, err error) {
				first, _, _ := strings.Cut(err.Error(), "\n")
				p.gaveUp = append(p.gaveUp, i.ID+": "+first)
			}}
		if p.perhaps != nil {
			p.perhaps(&opts)
		}
		q, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		p.Queue = q
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			q.Run(ctx)
		}()
		synctest.Wait()
		script(p)
		cancel()
		<-done
	})
}

func waits(namespace, id string) incident.Incident {
	return incident.Incident{ID: id, Workload: incident.Ref{Kind: "Pod", Namespace: namespace, Name: id}}
}

func TestNamespacesTakeTurns(t *testing.T) {
	p := &played{takes: 500 * time.Millisecond}
	p.run(t, func(p *played) {
		for n := range 300 {
			p.Put(waits("loud", fmt.Sprint("loud-", n)))
		}
		time.Sleep(5 * time.Second)
		p.Put(waits("quiet", "quiet"))
		time.Sleep(160 * time.Second)
	})
	if len(p.looked) != 301 {
		t.Fatalf("%d diagnoses, want each incident once", len(p.looked))
	}
	if n := slices.Index(p.looked, "quiet"); p.at[n] > 7*time.Second {
		t.Errorf("the other tenant had its turn after %s, number %d", p.at[n]-5*time.Second, n)
	}
}

func TestANamespaceIsBounded(t *testing.T) {
	p := &played{perhaps: func(o *Options) { o.PerNamespace = 2 }}
	p.run(t, func(p *played) {
		for _, id := range []string{"a", "b", "c", "d"} {
			p.Put(waits("loud", id))
		}
		p.Put(waits("quiet", "q"))
		time.Sleep(time.Second)
		if want := []string{"a", "b", "q"}; !reflect.DeepEqual(slices.Sorted(slices.Values(p.looked)), want) || p.countLeft() != 2 {
			t.Errorf("looked at %v, %v left", p.looked, p.countLeft())
		}
		gone := waits("loud", "c")
		gone.Resolved = true
		p.Put(gone) // one of those that were left
		gone.ID = "a"
		p.Put(gone)
		time.Sleep(time.Second)
	})
	if want := []string{"a", "b", "d", "q"}; !reflect.DeepEqual(slices.Sorted(slices.Values(p.looked)), want) || p.countLeft() != 0 {
		t.Errorf("looked at %v, %v left", p.looked, p.countLeft())
	}
}

// A storm makes one incident grow for minutes: what only grows is looked at less and less
// often, and its last state is looked at all the same.
func TestWhatOnlyGrowsIsLookedAtLessOften(t *testing.T) {
	last := 0
	p := &played{news: func(i incident.Incident) (bool, error) { last = i.Waiting; return i.Waiting == 1, nil }}
	p.run(t, func(p *played) {
		for n := range 1500 { // 5 minutes
			i := waits("a", "grows")
			i.Waiting = n + 1
			p.Put(i)
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(time.Minute)
	})
	if len(p.looked) > 16 || last != 1500 {
		t.Errorf("%d diagnoses, the last of %d pods: %v", len(p.looked), last, p.at)
	}
}

// What changed is looked at within two seconds, whatever was looked at just now, and once.
func TestChangesAreLookedAt(t *testing.T) {
	p := &played{takes: 50 * time.Millisecond, news: func(incident.Incident) (bool, error) { return false, nil }}
	p.run(t, func(p *played) {
		for _, ns := range []string{"a", "b"} {
			p.Put(waits(ns, "in-"+ns))
		}
		time.Sleep(time.Minute)
		p.looked, p.at = nil, nil
		for range 100 {
			p.Changed("a") // a quota, say
		}
		time.Sleep(2 * time.Second)
		if want := []string{"in-a"}; !reflect.DeepEqual(p.looked, want) {
			t.Errorf("after a change in a: %v", p.looked)
		}
		if last := p.read[len(p.read)-1]; last < time.Minute+450*time.Millisecond {
			t.Errorf("after changes that settled for half a second it is told from what was read %s after the start", last)
		}
		p.looked = nil
		p.Changed("")
		time.Sleep(2 * time.Second)
		if want := []string{"in-a", "in-b"}; !reflect.DeepEqual(slices.Sorted(slices.Values(p.looked)), want) {
			t.Errorf("after a change of a node: %v", p.looked)
		}
	})
}

// What is waited for after a change is that changes settle, and the incidents before it: no
// pace, no rest. Where changes never end, nothing waits longer than for two rounds of all, in which
// it was first and is last, a rest of three times one, and twice for changes to settle.
func TestChangesAreLookedAtOneAfterTheOther(t *testing.T) {
	const n, takes, settle = 5, 100 * time.Millisecond, 500 * time.Millisecond
	p := &played{takes: takes, news: func(incident.Incident) (bool, error) { return false, nil }}
	p.run(t, func(p *played) {
		for i := range n {
			p.Put(waits("a", fmt.Sprint(i)))
		}
		time.Sleep(time.Minute)
		for range 10 { // each has the longest pace by now
			for i := range n {
				p.Put(waits("a", fmt.Sprint(i)))
			}
			time.Sleep(time.Minute)
		}
		p.at = nil
		p.Changed("")
		time.Sleep(10 * time.Second)
		for i, at := range p.at {
			if want := 11*time.Minute + settle + time.Duration(i)*takes; at != want {
				t.Errorf("number %d is looked at after %s, want %s", i, at, want)
			}
		}
		if len(p.at) != n {
			t.Errorf("%d looks, want one an incident", len(p.at))
		}
		p.looked, p.at = nil, nil
		for range 600 { // a minute
			p.Changed("")
			time.Sleep(takes)
		}
	})
	last := map[string]time.Duration{}
	for i, id := range p.looked {
		if most := (2+rest)*n*takes + 2*settle; last[id] > 0 && p.at[i]-last[id] > most {
			t.Errorf("%s is looked at after %s, want at most %s", id, p.at[i]-last[id], most)
		}
		last[id] = p.at[i]
	}
	if len(last) != n || len(p.looked) < 15*n {
		t.Errorf("%d looks of %d incidents", len(p.looked), len(last))
	}
}

// A cluster that never stands still does not keep a processor busy.
func TestChangesWithoutEndAreBounded(t *testing.T) {
	p := &played{takes: time.Second, news: func(incident.Incident) (bool, error) { return false, nil }}
	p.run(t, func(p *played) {
		p.Put(waits("a", "in-a"))
		for range 1000 {
			p.Changed("")
			time.Sleep(100 * time.Millisecond)
		}
	})
	if n := len(p.looked); n < 20 || n > 28 {
		t.Errorf("%d diagnoses of 1 s in 100 s: %v", n, p.at)
	}
}

// A tenant who never stops making incidents keeps nobody from being told of a change.
func TestChangesDoNotWaitForAFlood(t *testing.T) {
	p := &played{takes: 200 * time.Millisecond, news: func(incident.Incident) (bool, error) { return false, nil }}
	p.run(t, func(p *played) {
		p.Put(waits("quiet", "quiet"))
		for n := range 600 { // a minute, twice as many as can be looked at
			p.Put(waits("loud", fmt.Sprint("loud-", n)))
			if n == 200 || n == 400 {
				p.Changed("quiet")
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	var quiet []time.Duration
	for n, id := range p.looked {
		if id == "quiet" {
			quiet = append(quiet, p.at[n])
		}
	}
	if len(quiet) != 3 || quiet[1] > 28*time.Second || quiet[2] > 48*time.Second {
		t.Errorf("changes at 20 s and 40 s were looked at after %v", quiet)
	}
}

// Others have their turn between the tries of one that cannot be diagnosed, and news of
// it is tried again.
func TestPoisonIsGivenUp(t *testing.T) {
	p := &played{news: func(i incident.Incident) (bool, error) {
		switch i.ID {
		case "bad":
			panic("poison")
		case "worse":
			return false, errors.New("no copy of the cluster")
		}
		return true, nil
	}}
	p.run(t, func(p *played) {
		p.Put(waits("a", "bad"))
		p.Put(waits("a", "worse"))
		p.Put(waits("a", "good"))
		time.Sleep(time.Minute)
		if want := []string{"bad", "bad", "bad", "good", "worse", "worse", "worse"}; !reflect.DeepEqual(slices.Sorted(slices.Values(p.looked)), want) || p.looked[2] != "good" {
			t.Errorf("looked at %v", p.looked)
		}
		if want := []string{"bad: panic: poison", "worse: no copy of the cluster"}; !reflect.DeepEqual(slices.Sorted(slices.Values(p.gaveUp)), want) {
			t.Errorf("given up: %v", p.gaveUp)
		}
		p.looked = nil
		p.Changed("")
		time.Sleep(time.Second)
		if want := []string{"good"}; !reflect.DeepEqual(p.looked, want) {
			t.Errorf("after a change: %v", p.looked)
		}
		time.Sleep(9 * time.Minute)
		p.looked = nil
		p.Put(waits("a", "worse"))
		time.Sleep(time.Minute)
		if want := []string{"worse", "worse", "worse"}; !reflect.DeepEqual(p.looked, want) || len(p.gaveUp) != 3 {
			t.Errorf("after news of it: %v, given up: %v", p.looked, p.gaveUp)
		}
	})
}

// A queue in which nothing moves is told from one in which much is due, and from one in
// which what is due is only paced.
func TestStuck(t *testing.T) {
	p := &played{takes: 10 * time.Second, news: func(incident.Incident) (bool, error) { return false, nil }}
	p.run(t, func(p *played) {
		began := time.Now()
		since := func() time.Duration {
			if at := p.Stuck(); !at.IsZero() {
				return at.Sub(began).Round(time.Second)
			}
			return -1
		}
		if got := since(); got != -1 {
			t.Errorf("nothing is due, stuck since %s", got)
		}
		for _, id := range []string{"one", "two", "three"} {
			p.Put(waits("a", id))
		}
		for _, want := range []time.Duration{0, 10 * time.Second, -1} { // one, two and three are looked at
			time.Sleep(5 * time.Second)
			if got := since(); got != want {
				t.Errorf("after %s: stuck since %s, want %s", time.Since(began), got, want)
			}
			time.Sleep(5 * time.Second)
		}
		time.Sleep(time.Second)
		p.Put(waits("a", "three")) // it was looked at just now
		if got := since(); got != -1 {
			t.Errorf("what is paced is stuck since %s", got)
		}
		time.Sleep(time.Minute)
	})
}
