package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// handedOver is how long it may take until the one that stood by has diagnosed what began to
// wait when the other was killed.
const handedOver = 20 * time.Second

// Of two services on one NATS one publishes and one stands by, ready. The first is killed,
// then the other: what begins to wait is known and diagnosed within 20 s, nothing is lost,
// and what was said before is not said again.
func TestStandbyTakesOver(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	n := newNATS(t)
	n.start(t)
	with := fmt.Sprintf("{url: %q}", n.url())
	leads := observe(t, c, with)
	leads.says(t, "ok\n", time.Minute)
	doubled := repeats(t, n.url(), clusterUID(t, c))
	names := leads.waits(t, "before", 3)
	leads.explains(t, names, 30*time.Second)
	rounds := 2
	if soak() {
		rounds = 20
	}
	var worst time.Duration
	for round := range rounds {
		other := observe(t, c, with)
		other.says(t, "ok, standby\n", time.Minute)
		if got := len(other.diagnoses()); got != 0 {
			t.Errorf("the one that stands by has told %d diagnoses", got)
		}
		leads.kill()
		began := time.Now()
		fresh := other.waits(t, fmt.Sprintf("meanwhile-%d", round), 3)
		names = append(names, fresh...)
		other.explains(t, names, 2*handedOver)
		worst = max(worst, time.Since(began))
		known(t, n.url(), clusterUID(t, c), names)
		leads = other
	}
	t.Logf("%d hand-overs, at most %.1f s; %d incidents, doubled: %q", rounds, worst.Seconds(), len(names), doubled())
	if worst > handedOver || len(doubled()) > 0 {
		t.Error("that is too late, or twice")
	}
}

// repeats follows the diagnoses on the bus, and tells which said what the one before of the
// same incident had said.
func repeats(t *testing.T, url, cluster string) func() []string {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{Cluster: cluster, URL: url})
	must(t, err)
	var mu sync.Mutex
	var twice []string
	last := map[string]string{}
	ctx, end := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() {
		b.Follow(ctx, bus.Diagnoses, func(key string, body []byte) {
			var d diagnosis.Summary
			if err := json.Unmarshal(body, &d); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if last[key] == gist(d) {
				twice = append(twice, d.Workload.Name)
			}
			last[key] = gist(d)
		}, func(err error) { t.Error("the test lost the bus: ", err) })
	})
	t.Cleanup(func() {
		end()
		following.Wait()
		b.Close()
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), twice...)
	}
}

// gist is what a diagnosis says, without its words and ages.
func gist(d diagnosis.Summary) string {
	says := fmt.Sprint(d.Alike, " ", d.Pods.Waiting, d.NodeCount, len(d.Nodes), len(d.Unread))
	for _, c := range d.Causes {
		says += fmt.Sprint(" ", c.ID, c.Certainty, c.Nodes)
	}
	for _, f := range d.Fixes {
		says += fmt.Sprint(" ", f.Plan, f.Kinds, f.EvictionCount)
	}
	return says
}
