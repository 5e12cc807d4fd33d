package acceptance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/unpend/unpend/testdata/controlplane"
)

// natsCluster is three nats-servers with JetStream, each a process of its own.
type natsCluster struct {
	*testing.T
	servers []*natsProcess
	js      jetstream.JetStream
	cluster string // whose messages they hold
}

func newNATSCluster(t *testing.T, uid string) *natsCluster {
	t.Helper()
	n := &natsCluster{T: t, cluster: uid}
	var routes, urls []string
	for range 3 {
		routes = append(routes, "nats://"+controlplane.FreeAddress(t))
	}
	for i := range 3 {
		s := newNATS(t, "--name", fmt.Sprintf("n%d", i), "--cluster_name", "three", "--cluster", routes[i], "--routes", strings.Join(routes, ","))
		n.servers, urls = append(n.servers, s), append(urls, s.url())
		s.start(t)
	}
	var conn *nats.Conn
	controlplane.Eventually(t, 30*time.Second, "the three servers have a leader", func() (bool, string) {
		var err error
		if conn == nil {
			conn, err = nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
		}
		if err == nil && n.js == nil {
			n.js, err = jetstream.New(conn)
		}
		if err == nil {
			_, err = n.js.AccountInfo(t.Context())
		}
		return err == nil && len(conn.Servers()) == 3, fmt.Sprint(err)
	})
	t.Cleanup(conn.Close)
	return n
}

func (n *natsCluster) url() string {
	var urls []string
	for _, s := range n.servers {
		urls = append(urls, s.url())
	}
	return strings.Join(urls, ",")
}

// leader is the server that leads the stream of a topic, once each of its replicas is there
// and has all.
func (n *natsCluster) leader(topic string) *natsProcess {
	n.Helper()
	var leads *natsProcess
	controlplane.Eventually(n.T, time.Minute, "the stream has three replicas that have all", func() (bool, string) {
		at, err := n.js.Stream(n.Context(), "UNPEND_V1_"+n.cluster+"_"+topic)
		if err != nil {
			return false, err.Error()
		}
		info := at.CachedInfo()
		ready := info.Cluster != nil && info.Cluster.Leader != "" && len(info.Cluster.Replicas) == 2 &&
			!slices.ContainsFunc(info.Cluster.Replicas, func(p *jetstream.PeerInfo) bool { return !p.Current || p.Offline })
		if ready {
			leads = n.servers[info.Cluster.Leader[1]-'0']
		}
		return ready, fmt.Sprintf("%+v", info.Cluster)
	})
	return leads
}

// tallied is what a stream has stored, by the ids of its messages, from its beginning.
type tallied struct {
	mu  sync.Mutex
	ids map[string][]uint64
}

func (n *natsCluster) follow(topic string) *tallied {
	n.Helper()
	s := &tallied{ids: map[string][]uint64{}}
	c, err := n.js.OrderedConsumer(n.Context(), "UNPEND_V1_"+n.cluster+"_"+topic, jetstream.OrderedConsumerConfig{})
	must(n.T, err)
	consuming, err := c.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			n.Error(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		id := m.Headers().Get(jetstream.MsgIDHeader)
		if seqs := s.ids[id]; !slices.Contains(seqs, meta.Sequence.Stream) {
			s.ids[id] = append(seqs, meta.Sequence.Stream)
		}
	})
	must(n.T, err)
	n.Cleanup(consuming.Stop)
	return s
}

// twice counts the ids that were stored more than once, and all.
func (s *tallied) twice() (doubled, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seqs := range s.ids {
		if len(seqs) > 1 {
			doubled++
		}
	}
	return doubled, len(s.ids)
}

// cutsOfThree are the topics whose leading server is killed, one after the other.
func cutsOfThree() []string {
	if soak() {
		return []string{"INCIDENTS", "DIAGNOSES", "INCIDENTS", "DIAGNOSES", "OUTCOMES"}
	}
	return []string{"INCIDENTS"}
}

// ofThree kills, in the middle of a storm, the one of three servers that leads: the two that
// are left elect another, and nothing is lost, nor stored twice.
func ofThree(t *testing.T, c *controlplane.ControlPlane) (held int, figures string) {
	t.Helper()
	n := newNATSCluster(t, clusterUID(t, c))
	o := observe(t, c, fmt.Sprintf("{url: %q}", n.url()))
	o.says(t, "ok", time.Minute)
	incidents, diagnoses := n.follow("INCIDENTS"), n.follow("DIAGNOSES")
	var names []string
	var worst time.Duration
	for i, topic := range cutsOfThree() {
		leads := n.leader(topic)
		for j := range 4 {
			names = append(names, o.waits(t, fmt.Sprintf("three-%d%d", i, j), waitsFor)...)
			if j == 1 {
				leads.kill()
			}
		}
		worst = max(worst, o.explains(t, names, time.Minute)) // with two
		o.says(t, "ok", 30*time.Second)
		leads.start(t)
		held++
	}
	n.leader("INCIDENTS")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := n.js.AccountInfo(ctx)
	must(t, err)
	known(t, n.url(), n.cluster, names)
	twiceI, allI := incidents.twice()
	twiceD, allD := diagnoses.twice()
	if twiceI+twiceD > 0 || allI < len(names) || allD < len(names) {
		t.Errorf("%d of %d incidents and %d of %d diagnoses were stored twice; %d are waited for", twiceI, allI, twiceD, allD, len(names))
		held = 0
	}
	return held, fmt.Sprintf("of three servers the leading one killed, %d times: all %d incidents diagnosed by the two others at most %.1f s later, 0 lost, 0 of %d messages stored twice", held, len(names), worst.Seconds(), allI+allD)
}
