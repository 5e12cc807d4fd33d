package bus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// followed collects what a follower is told.
type followed struct {
	mu   sync.Mutex
	got  []string
	told chan struct{}
}

func (f *followed) take(key string, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, key+"="+string(body))
	f.told <- struct{}{}
}

// until waits for the last of some messages and returns all.
func (f *followed) until(t *testing.T, last string) []string {
	t.Helper()
	patience := time.After(40 * time.Second)
	for {
		f.mu.Lock()
		got := slices.Clone(f.got)
		f.mu.Unlock()
		if slices.Contains(got, last) {
			return got
		}
		select {
		case <-f.told:
		case <-patience:
			t.Fatalf("%s has not come: %v", last, got)
		}
	}
}

func follow(t *testing.T, b *Bus) *followed {
	t.Helper()
	f := &followed{told: make(chan struct{}, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Follow(ctx, Incidents, f.take, func(err error) { t.Log(err) })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

func put(t *testing.T, b *Bus, key, body string) {
	t.Helper()
	if err := b.Publish(t.Context(), Incidents, key, key+body, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func TestFollowTellsTheNewestThenAll(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	for n := range 3 {
		put(t, b, "a", fmt.Sprint(n))
	}
	put(t, b, "b", "0")
	f := follow(t, b)
	if got := f.until(t, "b=0"); !slices.Equal(got, []string{"a=2", "b=0"}) {
		t.Errorf("at the start: %v", got)
	}
	put(t, b, "a", "3")
	if got := f.until(t, "a=3"); !slices.Equal(got, []string{"a=2", "b=0", "a=3"}) {
		t.Errorf("afterwards: %v", got)
	}
	// Another one is told all that is true again.
	if got := follow(t, b).until(t, "a=3"); !slices.Equal(got, []string{"b=0", "a=3"}) {
		t.Errorf("a second follower: %v", got)
	}
}

// A store that somebody deleted, and that was made again, is followed from its first message.
func TestFollowSeesAStreamThatWasMadeAgain(t *testing.T) {
	t.Parallel() // it waits most of its time
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	for n := range 5 {
		put(t, b, "a", fmt.Sprint(n))
	}
	f := follow(t, b)
	f.until(t, "a=4")
	if err := b.js.DeleteStream(t.Context(), b.name(Incidents)); err != nil {
		t.Fatal(err)
	}
	<-b.Recovered()
	put(t, b, "c", "0")
	if got := f.until(t, "c=0"); !slices.Equal(got, []string{"a=4", "c=0"}) {
		t.Errorf("after the stream was made again: %v", got)
	}
}
