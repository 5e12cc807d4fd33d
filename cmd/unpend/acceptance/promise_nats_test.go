package acceptance

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// natsServer is what nats-server's own main does.
func natsServer() {
	opts, err := server.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ExitOnError), os.Args[1:], server.PrintServerAndExit, func() {}, server.PrintTLSHelpAndDie)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s, err := server.NewServer(opts)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		server.PrintAndDie(err.Error())
	}
	s.WaitForShutdown()
}

// natsProcess is a nats-server as a child, which can be killed and started again.
type natsProcess struct {
	*process
	address, dir string
	more         []string // arguments
}

func newNATS(t *testing.T, more ...string) *natsProcess {
	t.Helper()
	return &natsProcess{address: controlplane.FreeAddress(t), dir: t.TempDir(), more: more}
}

func (n *natsProcess) url() string { return "nats://" + n.address }

func (n *natsProcess) start(t *testing.T) {
	t.Helper()
	host, port, err := net.SplitHostPort(n.address)
	must(t, err)
	n.process = newProcess(t, nil, "nats-server", append([]string{"--js", "--store_dir", n.dir, "--addr", host, "--port", port}, n.more...)...)
	n.process.start(t)
}

const (
	fewKills = 8
	allKills = 20
	waitsFor = 2 // Jobs that begin to wait at each kill
	away     = 10 * time.Second
)

// promiseR06: NATS is killed in the middle of a storm, loses its folder, and is away. Once it
// is there again the service is ready within 30 s, and every incident is there and diagnosed.
// Of three servers one may be killed, and nobody waits for it.
func promiseR06(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	n := newNATS(t)
	n.start(t)
	o := observe(t, c, fmt.Sprintf("{url: %q}", n.url()))
	o.says(t, "ok", time.Minute)
	kills := controlplane.Of(fewKills, allKills)
	var worst, all time.Duration
	var names []string
	held := 0
	again := func(name string, meanwhile func()) {
		names = append(names, o.waits(t, name, waitsFor)...)
		<-time.After(rand.N(300 * time.Millisecond)) // somewhere in between
		n.kill()
		meanwhile()
		n.start(t)
		began := time.Now()
		o.says(t, "ok", 30*time.Second)
		worst = max(worst, time.Since(began))
		held++
	}
	knows := func() {
		began := time.Now()
		o.explains(t, names, 30*time.Second)
		known(t, n.url(), clusterUID(t, c), names)
		all = max(all, time.Since(began))
	}
	for i := range kills {
		again(fmt.Sprintf("storm-%02d", i), func() {})
	}
	knows()
	again("deleted", func() { must(t, os.RemoveAll(n.dir)) })
	knows()
	again("away", func() {
		o.says(t, "not-connected since ", 5*time.Second)
		<-time.After(away)
	})
	knows()
	o.kill()
	n.kill()
	three, figures := ofThree(t, c)
	report(t, held+three, kills+2+len(cutsOfThree()), fmt.Sprintf("killed %d times, its folder deleted, away for %s: ready at most %.1f s after NATS was started, all %d incidents there and diagnosed at most %.1f s later, 0 lost; %s",
		kills, away, worst.Seconds(), len(names), all.Seconds(), figures))
}

// known waits until the bus tells of every one that it waits.
func known(t *testing.T, url, cluster string, names []string) {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{Cluster: cluster, URL: url})
	must(t, err)
	defer b.Close()
	controlplane.Eventually(t, 30*time.Second, "the bus knows all incidents", func() (bool, string) {
		left := map[string]bool{}
		for _, n := range names {
			left[n] = true
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := b.Kept(ctx, bus.Incidents, func(body []byte) error {
			var i incident.Incident
			if err := json.Unmarshal(body, &i); err != nil {
				return err
			}
			if !i.Resolved {
				delete(left, i.Workload.Name)
			}
			return nil
		})
		return err == nil && len(left) == 0, fmt.Sprint(slices.Sorted(maps.Keys(left)), err)
	})
}
