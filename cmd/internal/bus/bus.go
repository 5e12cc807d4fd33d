// Package bus carries work between the rooms over NATS JetStream. Every subject,
// stream and delivery rule stands in this room, and nothing else speaks NATS.
package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

// Topic is one kind of message.
type Topic struct {
	stream, subject string // the last words of their names
}

// The topics. Each keeps the newest message per key only: an incident, or a plan, is
// level-triggered, what is newer says all of it.
var (
	Incidents   = Topic{"INCIDENTS", "incident"}
	Diagnoses   = Topic{"DIAGNOSES", "diagnosis"}
	Outcomes    = Topic{"OUTCOMES", "outcome"} // of plans: keyed by incident and plan
	Told        = Topic{"TOLD", "told"}        // what people were shown where: keyed by the place, and what it is of
	deadLetters = Topic{"DEAD", "dead"}

	topics = []Topic{Incidents, Diagnoses, Outcomes, Told, deadLetters}

	// Documents are what the team has said before, and how far it was read; Heard is what has
	// to be read again. They are there where Options.Documents is given.
	Documents = Topic{"DOCUMENTS", "document"}
	Heard     = Topic{"HEARD", "heard"}
)

const (
	// maxAge: an incident that nobody renewed for so long is rebuilt from the pods.
	maxAge = 14 * 24 * time.Hour
	// duplicates is how long a message id is remembered (nats-server's own default
	// of two minutes is shorter than a watcher's restart).
	duplicates = 2 * time.Hour
	// tries before a message is parked by us; JetStream would leave it invisible.
	tries = 3
	// ackWait is how long a message is missed whose reader, or whose NATS, was killed; work
	// that takes longer says so in between.
	ackWait = 10 * time.Second
	retryIn = 2 * time.Second
	// heartbeat of NATS to a reader that waits: without two of them reading begins again.
	heartbeat = 2 * time.Second
	// maxLag is how far one publisher may be behind another. A stored message that
	// is older than that gives way to any: after a restored backup resourceVersions
	// begin again below it.
	maxLag = 10 * time.Minute
	// DefaultMaxBytes is far below any volume: a full disk shows as a time-out,
	// a full stream as a clean error.
	DefaultMaxBytes = 256 << 20
	// heardBytes: of a thread no more is told than where it is.
	heardBytes = 16 << 20
	// maxDocument is above what a document may have, and below what NATS takes of a message.
	maxDocument = 768 << 10
)

// Options of a Bus.
type Options struct {
	// Cluster tells one cluster's messages from another's on the same NATS: the uid of
	// its namespace kube-system. Letters, digits, "-" and "_"; required.
	Cluster string
	// URL of a NATS cluster; empty: embedded, with no listener unless Listen is given.
	URL string
	// Listen is where others come to the embedded server, as :4222; TokenFile is required then.
	Listen string
	// TokenFile, CredsFile, CAFile, and CertFile with KeyFile are what NATS is spoken to with:
	// a token, a user's JWT and seed, who vouches for the server, and a certificate of our own.
	// The embedded server that listens takes the token, and shows that certificate.
	TokenFile, CredsFile, CAFile, CertFile, KeyFile string
	// StoreDir of the embedded server; required unless Memory.
	StoreDir string
	// Memory keeps nothing: for the demo.
	Memory bool
	// MaxBytes of all streams together; 256 MiB by default.
	MaxBytes int64
	// Documents is how many bytes the stream of documents may have, besides MaxBytes. 0: there
	// is none. When it is full, what is there stays and can be changed, and what is new is
	// refused (ErrTopicFull).
	Documents int64
	// Replicas of every stream. 0: three where NATS is a cluster, else one, and what an
	// operator has chosen for a stream that is there stays.
	Replicas int
	// Logger of what the bus does by itself; nothing is logged without it.
	Logger *slog.Logger
	// Registerer of the bus's metrics, until Close; there are none without it.
	Registerer prometheus.Registerer
}

// topics are those that there are.
func (o Options) topics() []Topic {
	if o.Documents <= 0 {
		return topics
	}
	return append(slices.Clip(topics), Documents, Heard)
}

// Bus publishes and consumes. While NATS is away, or its volume full, it says so
// (Healthy), and works again by itself.
type Bus struct {
	opts    Options
	conn    *nats.Conn
	js      jetstream.JetStream
	lock    *os.File
	temp    string // removed at the end
	now     func() time.Time
	free    func(dir string) (bytes int64, err error) // of the volume that holds a folder
	metrics *metrics
	wake    chan struct{} // the keeper looks now
	well    chan struct{} // see Recovered
	end     context.CancelFunc
	keeper  sync.WaitGroup
	revived time.Time // when the keeper started the embedded server last
	moved   *upgrading
	letters *letters

	mu      sync.Mutex // guards what follows
	server  *server.Server
	streams map[Topic]jetstream.Stream
	found   *Trouble           // by the keeper
	failing map[Topic]*Trouble // the last publish of a topic
}

// clusterName is what may be part of a stream's name and one token of a subject.
var clusterName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)

// Open connects to NATS, or starts it inside this process, and makes the
// streams. Two processes on one StoreDir are refused, and so is a stream that
// somebody else made under a name of ours. What only takes time is no error: see Healthy.
func Open(ctx context.Context, opts Options) (*Bus, error) {
	b, err := newBus(opts)
	if err != nil {
		return nil, err
	}
	if err := b.open(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func newBus(opts Options) (*Bus, error) {
	if !clusterName.MatchString(opts.Cluster) {
		return nil, fmt.Errorf("the bus needs a name of the cluster of letters, digits, - and _, at most 63: it is %q", opts.Cluster)
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = DefaultMaxBytes
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Bus{opts: opts, streams: map[Topic]jetstream.Stream{}, failing: map[Topic]*Trouble{}, now: time.Now, free: free,
		metrics: newMetrics(opts.topics()), wake: make(chan struct{}, 1), well: make(chan struct{}, 1)}
	b.moved, b.letters = &upgrading{bus: b}, &letters{bus: b, parked: map[string]bool{}}
	return b, nil
}

func (b *Bus) open(ctx context.Context) error {
	if err := b.connect(); err != nil {
		return err
	}
	if err := b.metrics.register(b.opts.Registerer); err != nil {
		return err
	}
	b.look(ctx)
	if other, ok := errors.AsType[*ForeignError](b.Healthy()); ok {
		return other
	}
	keeping, end := context.WithCancel(context.WithoutCancel(ctx))
	b.end = end
	b.keeper.Go(func() { b.keep(keeping) })
	return nil
}

// Close ends the connection and the embedded server, and waits for it.
func (b *Bus) Close() {
	if b.end != nil {
		b.end()
		b.keeper.Wait()
	}
	if b.conn != nil {
		b.conn.Close()
	}
	b.stopServer()
	if b.lock != nil {
		b.lock.Close()
	}
	if b.temp != "" {
		os.RemoveAll(b.temp) //nolint:errcheck // nothing of it is needed any more
	}
	b.metrics.unregister(b.opts.Registerer)
}
