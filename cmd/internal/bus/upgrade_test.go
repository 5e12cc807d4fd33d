package bus

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// olderStreams are what the last unpend with the old names made, word by word.
func olderStreams() []jetstream.StreamConfig {
	var out []jetstream.StreamConfig
	for _, n := range [][2]string{{"INCIDENTS", "unpend.incident"}, {"DIAGNOSES", "unpend.diagnosis"}, {"OUTCOMES", "unpend.outcome"}, {"DEAD", "unpend.dead"}} {
		c := jetstream.StreamConfig{Name: n[0], Subjects: []string{n[1] + ".>"}, Storage: jetstream.FileStorage, MaxAge: maxAge, Duplicates: duplicates,
			MaxBytes: DefaultMaxBytes / 4, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, AllowDirect: true}
		if n[0] == "DEAD" {
			c.MaxMsgsPerSubject = -1
		}
		out = append(out, c)
	}
	return out
}

// ends are the outcomes that are kept, in order of their keys.
func ends(t *testing.T, b *Bus) []string {
	t.Helper()
	var got []string
	if err := b.Kept(t.Context(), Outcomes, func(body []byte) error { got = append(got, string(body)); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

var ourNames = []string{"UNPEND_V1_here_DEAD", "UNPEND_V1_here_DIAGNOSES", "UNPEND_V1_here_INCIDENTS", "UNPEND_V1_here_OUTCOMES", "UNPEND_V1_here_TOLD"}

func left(t *testing.T, js jetstream.JetStream, older ...string) {
	t.Helper()
	want := slices.Concat(ourNames, older)
	slices.Sort(want)
	if diff := cmp.Diff(want, streamNames(t, js)); diff != "" {
		t.Error(diff)
	}
}

// An upgrade: the ends of plans move, once, what can be made again does not, and the
// older streams go.
func TestOutcomesSurviveTheUpgrade(t *testing.T) {
	_, url := natsServer(t, t.TempDir(), -1)
	js := stranger(t, url)
	stores := [][]string{{"unpend.incident.gpu-1"}, {"unpend.diagnosis.gpu-1"}, {"unpend.outcome.gpu-1.aa", "unpend.outcome.gpu-2.bb"}, {"unpend.dead.gpu-3"}}
	for i, c := range olderStreams() {
		has(t, js, c, stores[i]...)
	}
	b := open(t, Options{Cluster: "here", URL: url})
	want := []string{"of unpend.outcome.gpu-1.aa", "of unpend.outcome.gpu-2.bb"}
	if diff := cmp.Diff(want, ends(t, b)); diff != "" {
		t.Error(diff)
	}
	left(t, js)
	if got := kept(t, b); len(got) > 0 {
		t.Errorf("incidents %v, which the watcher tells itself", got)
	}
	again := open(t, Options{Cluster: "here", URL: url})
	if diff := cmp.Diff(want, ends(t, again)); diff != "" {
		t.Error(diff)
	}
}

// The embedded store of an older unpend is taken up in the same way.
func TestUpgradeOfTheEmbeddedStore(t *testing.T) {
	dir := t.TempDir()
	before, url := natsServer(t, dir, -1)
	for _, c := range olderStreams() {
		has(t, stranger(t, url), c)
	}
	if _, err := stranger(t, url).Publish(t.Context(), "unpend.outcome.gpu-1.aa", []byte("parked")); err != nil {
		t.Fatal(err)
	}
	before.Shutdown()
	before.WaitForShutdown()
	b := open(t, Options{Cluster: "here", StoreDir: dir})
	if diff := cmp.Diff([]string{"parked"}, ends(t, b)); diff != "" {
		t.Error(diff)
	}
	left(t, b.js)
}

// While an older unpend still works, what it tells is taken over too, what is newer here
// stays, and its streams are there until it is gone.
func TestOlderUnpendThatStillWorks(t *testing.T) {
	_, url := natsServer(t, t.TempDir(), -1)
	js := stranger(t, url)
	for _, c := range olderStreams() {
		has(t, js, c)
	}
	ctx, leave := context.WithCancel(t.Context())
	gone := waits(ctx, t, js, "INCIDENTS")
	tells := func(key, says string) {
		t.Helper()
		if _, err := js.Publish(t.Context(), "unpend.outcome."+key, []byte(says)); err != nil {
			t.Fatal(err)
		}
	}
	tells("a", "old")
	tells("b", "old")
	first := open(t, Options{Cluster: "here", URL: url})
	left(t, js, "INCIDENTS", "DIAGNOSES", "OUTCOMES", "DEAD")
	if err := first.Publish(t.Context(), Outcomes, "a", "new", []byte("new")); err != nil {
		t.Fatal(err)
	}
	tells("b", "told again")
	leave()
	<-gone
	second := open(t, Options{Cluster: "here", URL: url})
	if diff := cmp.Diff([]string{"new", "told again"}, ends(t, second)); diff != "" {
		t.Error(diff)
	}
	left(t, js)
}

// waits reads a stream as an older unpend does, until ctx ends.
func waits(ctx context.Context, t *testing.T, js jetstream.JetStream, stream string) (gone chan struct{}) {
	t.Helper()
	c, err := js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{Durable: "diagnose", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := c.Messages()
	if err != nil {
		t.Fatal(err)
	}
	gone = make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, err := messages.Next(jetstream.NextContext(ctx)); err != nil {
				messages.Stop()
				return
			}
		}
	}()
	for reader := ""; reader == ""; { // its request is on the way
		at, err := js.Stream(ctx, stream)
		if err != nil {
			t.Fatal(err)
		}
		if reader, err = isRead(ctx, at); err != nil {
			t.Fatal(err)
		}
	}
	context.AfterFunc(ctx, messages.Stop)
	return gone
}

// A stream that an older unpend took over from somebody else still holds that one's
// messages: it is left to them.
func TestTakenOverStreamIsLeftToItsOwner(t *testing.T) {
	_, url := natsServer(t, t.TempDir(), -1)
	js := stranger(t, url)
	was := olderStreams()[0]
	shop := was
	shop.Subjects = []string{"orders.>"}
	has(t, js, shop, "orders.1")
	if _, err := js.UpdateStream(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	open(t, Options{Cluster: "here", URL: url})
	left(t, js, "INCIDENTS")
	if _, messages := holds(t, js, "INCIDENTS"); !cmp.Equal(messages, map[string]uint64{"orders.1": 1}) {
		t.Errorf("it holds %v", messages)
	}
	if _, err := js.Stream(t.Context(), "DEAD"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Error(err)
	}
}
