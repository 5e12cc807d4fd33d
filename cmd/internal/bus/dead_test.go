package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A message that cannot be dealt with lies where people see it, with why, and is logged once;
// the others are not kept waiting. When a later one of its key can be, it is forgotten.
func TestDeadLettersSayWhy(t *testing.T) {
	t.Parallel() // it waits most of its time
	said := &log{}
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir(), Logger: said.logger()})
	for i := range 20 {
		if err := b.Publish(t.Context(), Incidents, fmt.Sprint("k", i), fmt.Sprint(i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	tried := map[string]int{}
	var reading sync.WaitGroup
	reading.Go(func() {
		if err := b.Consume(ctx, Incidents, "r", func(_ context.Context, key string, body []byte) error {
			mu.Lock()
			defer mu.Unlock()
			if tried[key]++; key == "k7" && string(body) == "x" {
				return errors.New("not\nreadable\xff " + strings.Repeat("é", 2000))
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	dead := func() float64 { return testutil.ToFloat64(b.metrics.dead) }
	becomes(t, 20*time.Second, "it is parked", func() bool { return dead() == 1 })
	at, err := b.at(deadLetters)
	if err != nil {
		t.Fatal(err)
	}
	letter, err := at.GetLastMsgForSubject(t.Context(), "unpend.v1.here.dead.incident.k7")
	if err != nil {
		t.Fatal(err)
	}
	why := "not readable\uFFFD " + strings.Repeat("é", maxWhy-len("not readable? ")) + "…"
	if string(letter.Data) != "x" || letter.Header.Get(whyHeader) != why || letter.Header.Get(triesHeader) != "3" {
		t.Errorf("%q, %v", letter.Data, letter.Header)
	}
	all := func() int { mu.Lock(); defer mu.Unlock(); return len(tried) }
	becomes(t, 20*time.Second, "those behind it are read", func() bool { return all() == 20 })
	mu.Lock()
	if tried["k7"] != 3 {
		t.Errorf("tried %v", tried)
	}
	for key, n := range tried {
		if key != "k7" && n != 1 {
			t.Errorf("%s was dealt with %d times", key, n)
		}
	}
	mu.Unlock()
	if n := said.count("a message could not be dealt with and is parked"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	if err := b.Publish(t.Context(), Incidents, "k7", "later", []byte("y")); err != nil {
		t.Fatal(err)
	}
	becomes(t, 20*time.Second, "it is forgotten", func() bool { n, err := b.Parked(t.Context()); return err == nil && n == 0 && dead() == 0 })
	if b.Healthy() != nil {
		t.Error(b.Healthy())
	}
}

// A message as large as NATS takes can be parked too: the reason goes with its beginning.
func TestLargestMessageIsParked(t *testing.T) {
	t.Parallel() // it waits most of its time
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	body := bytes.Repeat([]byte("x"), 1<<20-200)
	if err := b.Publish(t.Context(), Incidents, "a", "a", body); err != nil {
		t.Fatal(err)
	}
	read(t, b, 3, func(string, string) error { return errors.New(strings.Repeat("é", 2000)) })
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		b.Consume(ctx, Incidents, "r", func(context.Context, string, []byte) error { return errors.New("not readable") })
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	becomes(t, 20*time.Second, "it is parked", func() bool { n, err := b.Parked(t.Context()); return err == nil && n == 1 })
}

// While the bus itself is in trouble nothing is wrong with a message: it is tried until it
// can be dealt with, and not parked.
func TestTroubleOfTheBusParksNothing(t *testing.T) {
	t.Parallel() // it waits most of its time
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	if err := b.Publish(t.Context(), Incidents, "a", "a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	tried := 0
	got := read(t, b, 5, func(string, string) error {
		if tried++; tried == 5 {
			b.published(t.Context(), Diagnoses, nil)
			return nil
		}
		return b.published(t.Context(), Diagnoses, errors.New("not taken"))
	})
	if n, err := b.Parked(t.Context()); err != nil || n != 0 || len(got) != 5 {
		t.Errorf("%v, %d parked, %v", got, n, err)
	}
}

// Who asks for the dead letters of a cluster is told its first ones, and how many there are,
// never those of another; and asking makes nothing.
func TestLettersAreOfOneCluster(t *testing.T) {
	_, url := natsServer(t, t.TempDir(), -1)
	for _, c := range []struct{ cluster, keys string }{{"east", "c a b"}, {"west", "x"}} {
		b := open(t, Options{Cluster: c.cluster, URL: url})
		for key := range strings.FieldsSeq(c.keys) {
			if err := b.Park(t.Context(), Incidents, key, []byte("of "+key), 3, errors.New("cannot read "+key)); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := time.Now()
	first, all, err := Letters(t.Context(), url, "east", 2)
	for i := range first {
		if age := began.Sub(first[i].Since); age < 0 || age > time.Minute {
			t.Errorf("%s is %s old", first[i].Key, age)
		}
		first[i].Since = time.Time{}
	}
	want := []Letter{{Topic: "incident", Key: "a", Why: "cannot read a"}, {Topic: "incident", Key: "b", Why: "cannot read b"}}
	if diff := cmp.Diff(want, first); diff != "" || all != 3 || err != nil {
		t.Errorf("of %d, %v: %s", all, err, diff)
	}
	before := streamNames(t, stranger(t, url))
	if first, all, err := Letters(t.Context(), url, "north", 2); len(first) > 0 || all != 0 || fmt.Sprint(err) != "no service of this cluster has used this NATS: it has no stream UNPEND_V1_north_DEAD" {
		t.Errorf("%v of %d, %v", first, all, err)
	}
	if diff := cmp.Diff(before, streamNames(t, stranger(t, url))); diff != "" {
		t.Error(diff)
	}
}
