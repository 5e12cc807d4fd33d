// Package bus carries work between the rooms over NATS JetStream. Every subject,
// stream and delivery rule stands in this file, and nothing else speaks NATS.
package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Topic is one kind of message.
type Topic struct {
	stream, subject string
}

// The topics. Each keeps the newest message per key only: an incident, or a plan, is
// level-triggered, what is newer says all of it.
var (
	Incidents   = Topic{"INCIDENTS", "unpend.incident"}
	Diagnoses   = Topic{"DIAGNOSES", "unpend.diagnosis"}
	Outcomes    = Topic{"OUTCOMES", "unpend.outcome"} // of plans: keyed by incident and plan
	deadLetters = Topic{"DEAD", "unpend.dead"}
)

const (
	// maxAge: an incident that nobody renewed for so long is rebuilt from the pods.
	maxAge = 14 * 24 * time.Hour
	// duplicates is how long a message id is remembered (nats-server's own default
	// of two minutes is shorter than a watcher's restart).
	duplicates = 2 * time.Hour
	// tries before a message is parked by us; JetStream would leave it invisible.
	tries = 3
	// ackWait is above the worst diagnosis; longer work says so in between.
	ackWait = 30 * time.Second
	retryIn = 2 * time.Second
	// maxLag is how far one publisher may be behind another. A stored message that
	// is older than that gives way to any: after a restored backup resourceVersions
	// begin again below it.
	maxLag = 10 * time.Minute
	// defaultMaxBytes is far below any volume: a full disk shows as a time-out,
	// a full stream as a clean error.
	defaultMaxBytes = 256 << 20
)

// Options of a Bus.
type Options struct {
	// URL of a NATS cluster; empty: embedded, with no listener.
	URL string
	// StoreDir of the embedded server; required unless Memory.
	StoreDir string
	// Memory keeps nothing: for the demo.
	Memory bool
	// MaxBytes of all streams together; 256 MiB by default.
	MaxBytes int64
}

// Bus publishes and consumes.
type Bus struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	lock   *os.File
	temp   string // removed at the end
	// streams by name
	streams map[string]jetstream.Stream
	now     func() time.Time
}

// Open connects to NATS, or starts it inside this process, and makes the
// streams. Two processes on one StoreDir are refused.
func Open(ctx context.Context, opts Options) (*Bus, error) {
	if opts.MaxBytes == 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	b := &Bus{streams: map[string]jetstream.Stream{}, now: time.Now}
	if err := b.connect(opts); err != nil {
		b.Close()
		return nil, err
	}
	storage := jetstream.FileStorage
	if opts.Memory {
		storage = jetstream.MemoryStorage
	}
	for _, t := range []Topic{Incidents, Diagnoses, Outcomes, deadLetters} {
		config := jetstream.StreamConfig{Name: t.stream, Subjects: []string{t.subject + ".>"}, Storage: storage, MaxAge: maxAge, Duplicates: duplicates,
			MaxBytes: opts.MaxBytes / 4, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, AllowDirect: true}
		if t == deadLetters {
			config.MaxMsgsPerSubject = -1
		}
		stream, err := b.js.CreateOrUpdateStream(ctx, config)
		if err != nil {
			b.Close()
			return nil, fmt.Errorf("make stream %s: %w", t.stream, err)
		}
		b.streams[t.stream] = stream
	}
	return b, nil
}

func (b *Bus) connect(opts Options) error {
	dial := []nats.Option{nats.MaxReconnects(-1), nats.Name("unpend"), nats.CustomInboxPrefix("_INBOX_unpend")}
	if opts.URL == "" {
		if err := b.embed(opts); err != nil {
			return err
		}
		dial = append(dial, nats.InProcessServer(b.server))
	}
	var err error
	if b.conn, err = nats.Connect(opts.URL, dial...); err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	return nil
}

// embed starts NATS without a listener: there is no port to attack. SyncAlways:
// otherwise an ack says nothing about the disk.
func (b *Bus) embed(opts Options) error {
	if opts.StoreDir == "" && !opts.Memory {
		return errors.New("the embedded NATS needs a folder: set bus.storeDir")
	}
	if opts.Memory {
		dir, err := os.MkdirTemp("", "unpend-bus-") // only for what the server writes of itself
		if err != nil {
			return fmt.Errorf("make a folder for NATS: %w", err)
		}
		opts.StoreDir, b.temp = dir, dir
	}
	if err := b.own(opts.StoreDir); err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{ServerName: "unpend", DontListen: true, JetStream: true, StoreDir: opts.StoreDir, SyncAlways: true, NoSigs: true,
		NoLog: true, JetStreamMaxStore: 2 * opts.MaxBytes, JetStreamMaxMemory: opts.MaxBytes})
	if err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	b.server = s
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("start NATS in %s: not ready within 10 s", opts.StoreDir)
	}
	return nil
}

// own takes the folder for this process alone.
func (b *Bus) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("%s is used by another unpend: %w", dir, err), f.Close())
	}
	b.lock = f
	return nil
}

// Close ends the connection and the embedded server, and waits for it.
func (b *Bus) Close() {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
	if b.lock != nil {
		b.lock.Close()
	}
	if b.temp != "" {
		os.RemoveAll(b.temp) //nolint:errcheck // nothing of it is needed any more
	}
}

// Healthy says what keeps messages from being taken; nil when nothing does.
func (b *Bus) Healthy() error {
	if !b.conn.IsConnected() {
		return errors.New("NATS is not connected")
	}
	return nil
}
