package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

func newer([]byte) bool { return false }

// replicated is what a replica is told until it has all that there is.
func replicatedOnce(t *testing.T, b *Bus) (got []string, calls int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	failed := false
	b.Replicate(ctx, Documents, func(_ context.Context, bodies [][]byte, all bool) error {
		if !failed && len(bodies) > 0 { // what it could not write comes again
			failed = true
			return errors.New("no room")
		}
		calls++
		for _, body := range bodies {
			got = append(got, string(body))
		}
		if all {
			cancel()
		}
		return nil
	}, func(err error) { t.Log(err) })
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Fatal("it was never told that it has all")
	}
	slices.Sort(got)
	return got, calls
}

// Of each document the last message is kept, for as long as there is NATS; a replica gets all
// of them, many at once, and again what it could not write.
func TestDocumentsAreReplicated(t *testing.T) {
	dir := t.TempDir()
	b, err := Open(t.Context(), Options{Cluster: "here", StoreDir: dir, Documents: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if got, calls := replicatedOnce(t, b); len(got) != 0 || calls != 1 {
		t.Errorf("of nothing: %v, %d", got, calls)
	}
	var want []string
	for n := range 1200 {
		key, body := fmt.Sprintf("slack.%d", n), fmt.Sprintf("%04d", n)
		if err := b.PublishNewer(t.Context(), Documents, key, key, []byte(body), newer); err != nil {
			t.Fatal(err)
		}
		want = append(want, body)
	}
	if err := b.PublishNewer(t.Context(), Documents, "slack.7", "slack.7-gone", []byte("0007 is gone"), newer); err != nil {
		t.Fatal(err)
	}
	want[7] = "0007 is gone"
	b.Close()
	b = open(t, Options{Cluster: "here", StoreDir: dir, Documents: 8 << 20})
	got, calls := replicatedOnce(t, b)
	if !slices.Equal(got, want) || calls < 3 || calls > 30 { // a machine that is busy pauses
		t.Errorf("%d documents in %d calls, want 1200 in some 3", len(got), calls)
	}
	s, err := b.js.Stream(t.Context(), b.name(Documents))
	if err != nil {
		t.Fatal(err)
	}
	if c := s.CachedInfo().Config; c.MaxAge != 0 || c.MaxMsgsPerSubject != 1 || c.MaxBytes != 8<<20 || c.Discard != jetstream.DiscardNew || c.Name != "UNPEND_V1_here_DOCUMENTS" || !slices.Equal(c.Subjects, []string{"unpend.v1.here.document.>"}) {
		t.Errorf("the stream is %+v", c)
	}
}

// What comes is handed over whatever NATS says is left: of a message that another one replaced
// before it was delivered, NATS goes on telling that it comes.
func TestReplicatedWhatIsReplaced(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir(), Documents: 8 << 20})
	ctx, end := context.WithCancel(t.Context())
	var mu sync.Mutex
	got, ended := map[string]string{}, make(chan struct{})
	go func() {
		defer close(ended)
		b.Replicate(ctx, Documents, func(_ context.Context, bodies [][]byte, _ bool) error {
			mu.Lock()
			defer mu.Unlock()
			for _, body := range bodies {
				key, is, _ := strings.Cut(string(body), " ")
				got[key] = is
			}
			return nil
		}, func(err error) { t.Log(err) })
	}()
	defer func() { end(); <-ended }()
	var publishing errgroup.Group
	for writer := range 8 {
		publishing.Go(func() error {
			for n := range 100 {
				if err := b.Publish(t.Context(), Documents, "same", fmt.Sprintf("%d-%d", writer, n), fmt.Appendf(nil, "same %d-%d", writer, n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := publishing.Wait(); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		key := fmt.Sprintf("last-%d", n)
		if err := b.Publish(t.Context(), Documents, key, key, []byte(key+" here")); err != nil {
			t.Fatal(err)
		}
		becomes(t, 20*time.Second, key, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return got[key] == "here"
		})
	}
}

// A full stream refuses what is new, takes what becomes smaller, and nothing else suffers.
func TestDocumentsFull(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir(), Documents: 1 << 20})
	body, err := []byte(strings.Repeat("x", 100<<10)), error(nil)
	n := 0
	for ; err == nil && n < 20; n++ {
		err = b.PublishNewer(t.Context(), Documents, fmt.Sprint(n), fmt.Sprint(n), body, newer)
	}
	if !errors.Is(err, ErrTopicFull) || n != 11 {
		t.Fatalf("after %d documents of 100 KiB: %v", n, err)
	}
	if err := b.Healthy(); err != nil {
		t.Errorf("the bus is well: %v", err)
	}
	if err := b.PublishNewer(t.Context(), Documents, "3", "3-gone", []byte("gone"), newer); err != nil {
		t.Errorf("a deletion: %v", err)
	}
	if err := b.PublishNewer(t.Context(), Documents, "20", "20", body, newer); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	if err := b.PublishNewer(t.Context(), Documents, "21", "21", []byte(strings.Repeat("x", 800<<10)), newer); err == nil || errors.Is(err, ErrTopicFull) || b.Healthy() != nil {
		t.Errorf("one that is too large: %v, and the bus: %v", err, b.Healthy())
	}
	if err := b.Publish(t.Context(), Incidents, "a", "a", body); err != nil {
		t.Error(err)
	}
}

// Without knowledge there are no streams for it.
func TestNoDocuments(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	if got := streamNames(t, b.js); !slices.Equal(got, ourNames) {
		t.Errorf("there are %v", got)
	}
}
