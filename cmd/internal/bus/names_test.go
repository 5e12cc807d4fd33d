package bus

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsServer is a real one with a listener, as operators run it, and its URL.
func natsServer(t *testing.T, dir string, port int) (*server.Server, string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS does not start")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s, s.ClientURL()
}

// stranger is somebody else on the same NATS.
func stranger(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// has makes a stream and stores messages, a subject after the other.
func has(t *testing.T, js jetstream.JetStream, c jetstream.StreamConfig, subjects ...string) {
	t.Helper()
	if _, err := js.CreateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		if _, err := js.Publish(t.Context(), s, []byte("of "+s)); err != nil {
			t.Fatal(err)
		}
	}
}

// holds is what a stream is made for, and what it holds of each subject.
func holds(t *testing.T, js jetstream.JetStream, name string) (jetstream.StreamConfig, map[string]uint64) {
	t.Helper()
	at, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := at.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Config, info.State.Subjects
}

func streamNames(t *testing.T, js jetstream.JetStream) []string {
	t.Helper()
	all := js.StreamNames(t.Context())
	var out []string
	for name := range all.Name() {
		out = append(out, name)
	}
	if all.Err() != nil {
		t.Fatal(all.Err())
	}
	slices.Sort(out)
	return out
}

// Two clusters on one NATS know nothing of each other, also where their workloads have
// the same names.
func TestTwoClustersOnOneNATS(t *testing.T) {
	_, url := natsServer(t, t.TempDir(), -1)
	east, west := open(t, Options{Cluster: "east", URL: url}), open(t, Options{Cluster: "west", URL: url})
	if err := versioned(t.Context(), east, "a", "five", 5); err != nil {
		t.Fatal(err)
	}
	if err := versioned(t.Context(), west, "a", "three", 3); err != nil {
		t.Fatal(err)
	}
	if e, w := kept(t, east), kept(t, west); !slices.Equal(e, []string{"5"}) || !slices.Equal(w, []string{"3"}) {
		t.Errorf("east keeps %v, west %v", e, w)
	}
	if got := read(t, west, 1, fine); !slices.Equal(got, []string{"a=3"}) {
		t.Errorf("west reads %v", got)
	}
	want := []string{"UNPEND_V1_east_DEAD", "UNPEND_V1_east_DIAGNOSES", "UNPEND_V1_east_INCIDENTS", "UNPEND_V1_east_OUTCOMES", "UNPEND_V1_east_TOLD",
		"UNPEND_V1_west_DEAD", "UNPEND_V1_west_DIAGNOSES", "UNPEND_V1_west_INCIDENTS", "UNPEND_V1_west_OUTCOMES", "UNPEND_V1_west_TOLD"}
	if diff := cmp.Diff(want, streamNames(t, stranger(t, url))); diff != "" {
		t.Error(diff)
	}
	if _, subjects := holds(t, stranger(t, url), want[2]); !cmp.Equal(subjects, map[string]uint64{"unpend.v1.east.incident.a": 1}) {
		t.Errorf("east's messages are %v", subjects)
	}
}

// What somebody else made is not taken over: under a name of ours it is refused by that
// name, under a name that an older unpend had it is not looked at, and nothing of it changes.
func TestForeignStreamsStayAsTheyAre(t *testing.T) {
	for name, tc := range map[string]struct {
		made    jetstream.StreamConfig
		refused bool
	}{
		"our name":               {jetstream.StreamConfig{Name: "UNPEND_V1_here_INCIDENTS", Subjects: []string{"orders.>"}}, true},
		"our name and subjects":  {jetstream.StreamConfig{Name: "UNPEND_V1_here_OUTCOMES", Subjects: []string{"unpend.v1.here.outcome.>", "orders.>"}}, true},
		"another cluster's mark": {jetstream.StreamConfig{Name: "UNPEND_V1_here_DEAD", Subjects: []string{"unpend.v1.here.dead.>", "orders.>"}, Metadata: map[string]string{ofCluster: "there", ofSchema: schema}}, true},
		"our subjects":           {jetstream.StreamConfig{Name: "EVERYTHING", Subjects: []string{"unpend.>", "orders.>"}}, true},
		"an older name":          {jetstream.StreamConfig{Name: "INCIDENTS", Subjects: []string{"orders.>"}}, false},
		"an older name, marked":  {jetstream.StreamConfig{Name: "DEAD", Subjects: []string{"orders.>"}, MaxAge: maxAge, Duplicates: duplicates, AllowDirect: true, Metadata: map[string]string{"team": "shop"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := natsServer(t, t.TempDir(), -1)
			js := stranger(t, url)
			has(t, js, tc.made, "orders.1", "orders.1", "orders.2")
			config, messages := holds(t, js, tc.made.Name)
			b, err := Open(t.Context(), Options{Cluster: "here", URL: url})
			if err == nil {
				b.Close()
			}
			var refusal *ForeignError
			if errors.As(err, &refusal) != tc.refused {
				t.Fatalf("answered %v", err)
			}
			if tc.refused && (refusal.Stream != tc.made.Name || !strings.Contains(err.Error(), "stream "+tc.made.Name+" of this NATS was not made by unpend") || !strings.Contains(err.Error(), "orders.>")) {
				t.Errorf("refused with %v", err)
			}
			after, kept := holds(t, js, tc.made.Name)
			if diff := cmp.Diff(config, after) + cmp.Diff(messages, kept); diff != "" {
				t.Error(diff)
			}
			if kept["orders.1"] != 2 || kept["orders.2"] != 1 {
				t.Errorf("it holds %v", kept)
			}
		})
	}
}

// What an operator changed of our streams stays where it is not ours to say.
func TestStreamsOfOursAreTakenUpAgain(t *testing.T) {
	_, url := natsServer(t, t.TempDir(), -1)
	first := open(t, Options{Cluster: "here", URL: url, MaxBytes: 4 << 20})
	if err := versioned(t.Context(), first, "a", "one", 1); err != nil {
		t.Fatal(err)
	}
	second := open(t, Options{Cluster: "here", URL: url, MaxBytes: 8 << 20})
	if got := kept(t, second); !slices.Equal(got, []string{"1"}) {
		t.Errorf("kept %v", got)
	}
	if c, _ := holds(t, stranger(t, url), "UNPEND_V1_here_INCIDENTS"); c.MaxBytes != 8<<20/5 || c.Metadata[ofCluster] != "here" || c.Metadata[ofSchema] != "v1" {
		t.Errorf("%+v", c)
	}
}

func TestClusterIsNamed(t *testing.T) {
	for _, cluster := range []string{"", "a.b", "a b", "*", ">", "a/b", strings.Repeat("a", 64), "é"} {
		if _, err := Open(t.Context(), Options{Cluster: cluster, Memory: true}); err == nil || !strings.Contains(err.Error(), "name of the cluster") {
			t.Errorf("%q: %v", cluster, err)
		}
	}
}
