package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, opts Options) *Bus {
	t.Helper()
	b, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// read consumes until n messages were handed over, and then waits no longer.
func read(t *testing.T, b *Bus, n int, handle func(key, body string) error) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	err := b.Consume(ctx, Incidents, "r", func(_ context.Context, key string, body []byte) error {
		got = append(got, key+"="+string(body))
		if len(got) == n {
			defer cancel()
		}
		return handle(key, string(body))
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) < n {
		t.Fatalf("got %v, want %d messages", got, n)
	}
	return got
}

func fine(string, string) error { return nil }

func TestRepeatsAreDroppedNewsIsNot(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	for i, id := range []string{"a-1", "a-1", "a-2", "a-3"} { // the second is another watcher's
		if err := b.Publish(t.Context(), Incidents, "a", id, fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.js.Stream(t.Context(), b.name(Incidents))
	if err != nil {
		t.Fatal(err)
	}
	if state := s.CachedInfo().State; state.LastSeq != 3 || state.Msgs != 1 {
		t.Errorf("%d stored, %d kept; want 3 and, of one incident, the newest", state.LastSeq, state.Msgs)
	}
	if got := read(t, b, 1, fine); got[0] != "a=3" {
		t.Errorf("got %v, want the newest", got)
	}
}

func TestRestartLosesNothing(t *testing.T) {
	dir := t.TempDir()
	b, err := Open(t.Context(), Options{Cluster: "here", StoreDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		if err := b.Publish(t.Context(), Incidents, key, key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), Options{Cluster: "here", StoreDir: dir}); err == nil || !strings.Contains(err.Error(), "used by another unpend") {
		t.Errorf("a second process was answered %v", err)
	}
	b.Close()
	again := open(t, Options{Cluster: "here", StoreDir: dir})
	if got := read(t, again, 2, fine); got[0] != "a=x" || got[1] != "b=x" {
		t.Errorf("after the restart: %v", got)
	}
}

func TestPoisonIsParkedAndOthersGoOn(t *testing.T) {
	t.Parallel() // it waits most of its time
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	for _, key := range []string{"bad", "good"} {
		if err := b.Publish(t.Context(), Incidents, key, key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	tried := 0
	read(t, b, 4, func(key, _ string) error { // 3 × bad, 1 × good
		if key == "bad" {
			if tried++; tried == 2 {
				panic("poison")
			}
			return errors.New("cannot be read")
		}
		return nil
	})
	// The last delivery is dealt with when the reader is started again, too.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := b.Consume(ctx, Incidents, "r", func(_ context.Context, key string, _ []byte) error {
		if key == "good" {
			t.Errorf("%s was delivered again", key)
		}
		return errors.New("still bad")
	}); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Parked(t.Context()); err != nil || n > 1 {
		t.Errorf("%d parked, %v", n, err)
	}
	if tried != 3 {
		t.Errorf("the bad one was tried %d times, want 3", tried)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(t.Context(), Options{Cluster: "here"}); err == nil || !strings.Contains(err.Error(), "bus.storeDir") {
		t.Errorf("no folder: %v", err)
	}
	if _, err := Open(t.Context(), Options{Cluster: "here", URL: "nats://a b"}); err == nil {
		t.Error("what is no address was connected to")
	}
}

func BenchmarkPublishConsume(b *testing.B) {
	bus, err := Open(b.Context(), Options{Cluster: "here", StoreDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer bus.Close()
	body := make([]byte, 2048)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	got := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		done <- bus.Consume(ctx, Incidents, "bench", func(context.Context, string, []byte) error { got <- struct{}{}; return nil })
	}()
	n := 0
	for b.Loop() {
		n++
		if err := bus.Publish(ctx, Incidents, fmt.Sprint(n%64), fmt.Sprint(n), body); err != nil {
			b.Fatal(err)
		}
		<-got
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
