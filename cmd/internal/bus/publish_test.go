package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// versioned publishes a number under a key, unless a higher one is there.
func versioned(ctx context.Context, b *Bus, key, id string, version int) error {
	return b.PublishNewer(ctx, Incidents, key, id, []byte(strconv.Itoa(version)), func(stored []byte) bool {
		n, err := strconv.Atoi(string(stored))
		return err == nil && n > version
	})
}

func kept(t *testing.T, b *Bus) []string {
	t.Helper()
	got := []string{}
	if err := b.Kept(t.Context(), Incidents, func(body []byte) error { got = append(got, string(body)); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func stored(t *testing.T, b *Bus) uint64 {
	t.Helper()
	info, err := b.streams[Incidents].Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.LastSeq
}

func TestWhoLagsTakesNobodysNewsAway(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	for _, step := range []struct {
		id      string
		version int
		kept    string
		stored  uint64
	}{
		{"five", 5, "5", 1},
		{"five", 5, "5", 1},  // the other's, the same
		{"three", 3, "5", 1}, // one that lags
		{"seven", 7, "7", 2},
		{"five", 5, "7", 2},
		{"eight", 8, "8", 3},
	} {
		if err := versioned(t.Context(), b, "a", step.id, step.version); err != nil {
			t.Fatal(err)
		}
		if got, n := kept(t, b), stored(t, b); !slices.Equal(got, []string{step.kept}) || n != step.stored {
			t.Errorf("after %s: %v kept, %d stored; want %s and %d", step.id, got, n, step.kept, step.stored)
		}
	}
	if err := versioned(t.Context(), b, "b", "one", 1); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, b); !slices.Equal(got, []string{"8", "1"}) {
		t.Errorf("another key: %v", got)
	}
}

// What comes back within a moment is news too, though JetStream remembers it.
func TestFactsThatComeBackAreNews(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	never := func([]byte) bool { return false }
	for n, fact := range []string{"A", "B", "A", "A", "B", "B"} {
		if err := b.PublishNewer(t.Context(), Incidents, "a", fact, []byte(fact), never); err != nil {
			t.Fatal(err)
		}
		if got, want := stored(t, b), []uint64{1, 2, 3, 3, 4, 4}[n]; got != want || !slices.Equal(kept(t, b), []string{fact}) {
			t.Errorf("%d: %d stored, %v kept; want %d and %s", n, got, kept(t, b), want, fact)
		}
	}
}

// After a restored backup the cluster counts from lower numbers: what is stored
// must not shut everything out for ever.
func TestOldNewsGivesWay(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	if err := versioned(t.Context(), b, "a", "nine", 9); err != nil {
		t.Fatal(err)
	}
	b.now = func() time.Time { return time.Now().Add(maxLag) }
	if err := versioned(t.Context(), b, "a", "two", 2); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, b); !slices.Equal(got, []string{"2"}) {
		t.Errorf("kept %v, want what is said now", got)
	}
}

// Whatever the order in which they come through, the newest stays, and nothing
// is stored after it.
func TestManyPublishersAgree(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	var all sync.WaitGroup
	for p := range 4 {
		all.Go(func() {
			for v := range 50 {
				version := v + 1
				if p%2 == 1 {
					version = 50 - v // one that tells everything backwards
				}
				if err := versioned(t.Context(), b, "a", fmt.Sprint(version), version); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := kept(t, b); !slices.Equal(got, []string{"50"}) {
		t.Errorf("kept %v, want 50", got)
	}
	if n := stored(t, b); n > 50 {
		t.Errorf("%d stored of 50 different messages", n)
	}
}

func TestKeptStopsAtAnError(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	for _, key := range []string{"a", "b"} {
		if err := b.Publish(t.Context(), Incidents, key, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	asked, bad := 0, errors.New("cannot be read")
	if err := b.Kept(t.Context(), Incidents, func([]byte) error { asked++; return bad }); !errors.Is(err, bad) || asked != 1 {
		t.Errorf("%v after %d", err, asked)
	}
	if err := b.Kept(t.Context(), Diagnoses, func([]byte) error { return bad }); err != nil {
		t.Errorf("an empty stream: %v", err)
	}
}
