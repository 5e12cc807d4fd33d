package bus

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// log is what a bus says; it may be read meanwhile.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// becomes waits until what is asked for holds, and says how long that took.
func becomes(t *testing.T, within time.Duration, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Since(began) > within {
			t.Fatalf("after %s still not: %s", within, what)
		}
		<-tick.C
	}
	return time.Since(began)
}

// reason of the trouble that a bus has now.
func reason(b *Bus) Reason {
	if is, ok := errors.AsType[*Trouble](b.Healthy()); ok {
		return is.Reason
	}
	return ""
}

func recovered(t *testing.T, b *Bus) {
	t.Helper()
	select {
	case <-b.Recovered():
	case <-time.After(10 * time.Second):
		t.Error("nobody was told that messages are taken again")
	}
}

// freePort is a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// A NATS that is away when the service starts, comes, ends, and comes back having lost all
// it had: each is said with its reason, once, and work goes on by itself.
func TestNATSComesAndGoes(t *testing.T) {
	t.Parallel() // it waits most of its time
	port := freePort(t)
	said, registry := &log{}, prometheus.NewRegistry()
	b := open(t, Options{Cluster: "here", URL: "nats://127.0.0.1:" + strconv.Itoa(port), Logger: said.logger(), Registerer: registry})
	if reason(b) != NotConnected {
		t.Errorf("before NATS is there: %v", b.Healthy())
	}
	if err := versioned(t.Context(), b, "a", "one", 1); err == nil {
		t.Error("a message was taken by nobody")
	}
	heard := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		if err := b.Consume(ctx, Incidents, "r", func(_ context.Context, key string, body []byte) error { heard <- key + string(body); return nil }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	for round := range 3 {
		dir := t.TempDir() // another one each time: what was kept is lost
		nats, _ := natsServer(t, dir, port)
		took := becomes(t, 10*time.Second, "messages are taken", func() bool { return b.Healthy() == nil })
		t.Logf("round %d: healthy after %s", round, took)
		recovered(t, b)
		if err := versioned(t.Context(), b, "a", strconv.Itoa(round), round); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-heard:
			if got != "a"+strconv.Itoa(round) {
				t.Errorf("heard %s in round %d", got, round)
			}
		case <-time.After(15 * time.Second):
			t.Fatal("the reader does not hear of it")
		}
		nats.Shutdown()
		nats.WaitForShutdown()
		becomes(t, 5*time.Second, "it is said that NATS is away", func() bool { return reason(b) == NotConnected })
		if got := testutil.ToFloat64(b.metrics.troubles.WithLabelValues(string(NotConnected))); round > 0 && got != 1 {
			becomes(t, 5*time.Second, "the metric says it", func() bool { return testutil.ToFloat64(b.metrics.troubles.WithLabelValues(string(NotConnected))) == 1 })
		}
	}
	becomes(t, 5*time.Second, "it is logged, once each time", func() bool {
		return said.count("messages are not taken") == 4 && said.count("messages are taken again") == 3
	})
	if n, err := testutil.GatherAndCount(registry, "unpend_bus_trouble"); err != nil || n != len(reasons) {
		t.Errorf("%d series, %v", n, err)
	}
}

// Streams that somebody removed while NATS stayed are made again, and what was kept is told
// again by who is asked to.
func TestRemovedStreamsAreMadeAgain(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	if err := versioned(t.Context(), b, "a", "one", 1); err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		if err := b.js.DeleteStream(t.Context(), b.name(topic)); err != nil {
			t.Fatal(err)
		}
	}
	recovered(t, b)
	becomes(t, 5*time.Second, "it is taken again", func() bool { return versioned(t.Context(), b, "a", "one", 1) == nil })
	becomes(t, 5*time.Second, "all are there", func() bool { return b.Healthy() == nil }) // while nats-server still removes a folder it makes none
	if got := kept(t, b); !slices.Equal(got, []string{"1"}) {
		t.Errorf("kept %v", got)
	}
}

// A full volume is said before JetStream sees it, at the start and later, and when there is
// room again work goes on, also in streams whose writes had failed.
func TestFullVolume(t *testing.T) {
	t.Parallel() // it waits most of its time
	var room atomic.Int64
	dir := t.TempDir()
	b, err := newBus(Options{Cluster: "here", StoreDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b.free = func(of string) (int64, error) {
		if of != dir {
			t.Errorf("looked at %s", of)
		}
		return room.Load(), nil
	}
	t.Cleanup(b.Close)
	if err := b.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if said := b.Healthy(); reason(b) != StoreFull || !strings.HasPrefix(said.Error(), "store-full since 20") || !strings.Contains(said.Error(), "0 KiB are left in "+dir) {
		t.Errorf("at the start: %v", said)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("written on the full volume: %v, %v", entries, err)
	}
	for version := range 2 {
		room.Store(reserve)
		t.Logf("taken %s after there is room", becomes(t, 10*time.Second, "messages are taken", func() bool { return b.Healthy() == nil }))
		recovered(t, b)
		if err := versioned(t.Context(), b, "a", strconv.Itoa(version), version); err != nil {
			t.Fatal(err)
		}
		room.Store(reserve - 1)
		if err := versioned(t.Context(), b, "a", "more", 9); !errors.Is(err, errFull) {
			t.Errorf("published on the full volume: %v", err)
		}
		becomes(t, 5*time.Second, "it is said", func() bool {
			return testutil.ToFloat64(b.metrics.troubles.WithLabelValues(string(StoreFull))) == 1 && reason(b) == StoreFull
		})
	}
	room.Store(reserve)
	becomes(t, 10*time.Second, "messages are taken", func() bool { return b.Healthy() == nil })
	if got := kept(t, b); !slices.Equal(got, []string{"1"}) {
		t.Errorf("kept %v", got)
	}
	if got := testutil.ToFloat64(b.metrics.failures.WithLabelValues("incident", string(StoreFull))); got != 2 {
		t.Errorf("%v failures are counted", got)
	}
}

// One message that is too large is an error of its publisher, is counted, and says nothing
// of the bus.
func TestMessageThatIsTooLarge(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	if err := b.Publish(t.Context(), Diagnoses, "a", "a", make([]byte, 2<<20)); err == nil || !strings.Contains(err.Error(), "publish to UNPEND_V1_here_DIAGNOSES") {
		t.Errorf("answered %v", err)
	}
	if got := testutil.ToFloat64(b.metrics.failures.WithLabelValues("diagnosis", string(TooLarge))); got != 1 || b.Healthy() != nil {
		t.Errorf("%v counted, %v", got, b.Healthy())
	}
}

// A publish that failed keeps the bus from being called healthy until the next is taken, or
// nobody has tried for a minute.
func TestFailingPublishes(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	b.end() // what the keeper can do about it is another matter
	b.keeper.Wait()
	now := time.Now()
	b.now = func() time.Time { return now }
	fails := errors.New("a disk error")
	for _, step := range []struct {
		after time.Duration
		err   error
		want  Reason
		since time.Time
	}{
		{0, fails, PublishFailing, now},
		{30 * time.Second, fails, PublishFailing, now},
		{0, nil, "", time.Time{}},
		{0, jetstream.ErrNoStreamResponse, StreamsMissing, now.Add(30 * time.Second)},
		{forgets, nil, "", time.Time{}},
	} {
		now = now.Add(step.after)
		if step.err != nil || step.after == 0 {
			b.published(t.Context(), Outcomes, step.err)
		}
		is, _ := errors.AsType[*Trouble](b.Healthy())
		if got := reason(b); got != step.want || is != nil && !is.Since.Equal(step.since) {
			t.Errorf("after %v: %v, want %s since %s", step.err, b.Healthy(), step.want, step.since)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.published(ended, Outcomes, context.Canceled); !errors.Is(err, context.Canceled) || b.Healthy() != nil {
		t.Errorf("who gives up: %v, %v", err, b.Healthy())
	}
}
