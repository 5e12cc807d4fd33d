package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR08: messages that nobody can read, one of them nearly a megabyte, before 99
// incidents. Each is tried at most three times and parked with the reason, logged once and counted;
// the 99 are diagnosed.
func promiseR08(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	cluster, server := clusterUID(t, c), newNATS(t)
	server.start(t)
	b, err := bus.Open(t.Context(), bus.Options{Cluster: cluster, URL: server.url()})
	must(t, err)
	defer b.Close()
	controlplane.Eventually(t, 20*time.Second, "NATS is there", func() (bool, string) { return b.Healthy() == nil, fmt.Sprint(b.Healthy()) })
	poison := map[string]string{"not-utf8": "{\"id\": \"\xff\xfe", "a-megabyte": `{"id": 5, "note": "` + strings.Repeat("x", 1<<20-300) + `"}`, "another-type": `["gpu-1"]`}
	for key, body := range poison {
		must(t, b.Publish(t.Context(), bus.Incidents, key, key, []byte(body)))
	}
	o := observe(t, c, fmt.Sprintf("{url: %q}", server.url()))
	o.says(t, "ok", time.Minute)
	took := o.explains(t, o.waits(t, "other", 99), 2*time.Minute)
	controlplane.Eventually(t, 30*time.Second, "all are parked", func() (bool, string) {
		n := o.figure(t, "unpend_dead_letters")
		return n == float64(len(poison)), fmt.Sprint(n)
	})
	held := 0
	for key, body := range poison {
		letter := deadLetter(t, server.url(), cluster, key)
		if kept := string(letter.Data); strings.HasPrefix(body, kept) && len(kept) >= min(len(body), 1<<20-16<<10) && letter.Header.Get("Unpend-Tries") == "1" && strings.HasPrefix(letter.Header.Get("Unpend-Why"), "read an incident: ") {
			held++
		} else {
			t.Errorf("%s: %d bytes, %v", key, len(letter.Data), letter.Header)
		}
	}
	said := statusWith(t, c, server.url())
	if !strings.Contains(said, fmt.Sprintf("%d messages could not be dealt with", len(poison))) {
		t.Errorf("status says %s", said)
	}
	for key := range poison {
		if !strings.Contains(said, "incident "+key+" since ") {
			t.Errorf("status does not tell of %s: %s", key, said)
		}
	}
	if n := o.told("could not be dealt with and is parked"); n != len(poison) {
		t.Errorf("it is logged %d times", n)
	}
	o.says(t, "ok", time.Second)
	report(t, held, len(poison), fmt.Sprintf("unreadable messages of up to 1 MiB: each tried once, for nothing of it can change, parked with its reason, logged once; 99 of 99 others diagnosed within %.1f s", took.Seconds()))
}

func deadLetter(t *testing.T, url, cluster, key string) *jetstream.RawStreamMsg {
	t.Helper()
	conn, err := nats.Connect(url)
	must(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	at, err := js.Stream(ctx, "UNPEND_V1_"+cluster+"_DEAD")
	must(t, err)
	letter, err := at.GetLastMsgForSubject(ctx, "unpend.v1."+cluster+".dead.incident."+key)
	must(t, err)
	return letter
}

// statusWith is what status says that may ask the bus.
func statusWith(t *testing.T, c *controlplane.ControlPlane, url string) string {
	t.Helper()
	p := newProcess(t, nil, "unpend", "status", "--nats", url, "--kubeconfig", c.Kubeconfig())
	p.start(t)
	if code := p.exits(t, 30*time.Second); code != 0 {
		t.Errorf("status ended with %d", code)
	}
	return strings.Join(p.out.all(), "\n")
}
