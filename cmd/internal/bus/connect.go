package bus

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// connect begins to: a NATS that is away is waited for, and what is published meanwhile
// fails at once, for it is said again.
func (b *Bus) connect() error {
	dial := []nats.Option{nats.Name("unpend"), nats.CustomInboxPrefix("_INBOX_unpend"), nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond),
		nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1),
		nats.ConnectHandler(func(*nats.Conn) { b.lookNow() }), nats.ReconnectHandler(func(*nats.Conn) { b.lookNow() }), nats.DisconnectErrHandler(func(*nats.Conn, error) { b.lookNow() })}
	if b.opts.URL == "" {
		if err := b.embed(); err != nil {
			return err
		}
		dial = append(dial, nats.InProcessServer(inProcess{b}))
	}
	dial = append(dial, b.shows()...)
	var err error
	if b.conn, err = nats.Connect(b.opts.URL, dial...); err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	return nil
}

// embed starts NATS, as a rule without a listener: there is no port to attack. On a volume that
// is full it is left to the keeper.
func (b *Bus) embed() error {
	if b.opts.StoreDir == "" && !b.opts.Memory {
		return errors.New("the embedded NATS needs a folder: set bus.storeDir")
	}
	if b.opts.Memory {
		dir, err := os.MkdirTemp("", "unpend-bus-") // only for what the server writes of itself
		if err != nil {
			return fmt.Errorf("make a folder for NATS: %w", err)
		}
		b.opts.StoreDir, b.temp = dir, dir
	}
	if err := b.own(b.opts.StoreDir); err != nil {
		return err
	}
	if b.room() != nil {
		return nil
	}
	return b.serve()
}

// serve starts the embedded server. SyncAlways: otherwise an ack says nothing about the
// disk.
func (b *Bus) serve() error {
	// The streams of an older unpend, or of a cluster that had the volume before, count too.
	o := &server.Options{ServerName: "unpend", DontListen: true, JetStream: true, StoreDir: b.opts.StoreDir, SyncAlways: true, NoSigs: true,
		NoLog: true, JetStreamMaxStore: 4*b.opts.MaxBytes + b.forDocuments(), JetStreamMaxMemory: b.opts.MaxBytes + b.forDocuments()}
	if err := b.listens(o); err != nil {
		return err
	}
	s, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startWait) {
		s.Shutdown()
		return fmt.Errorf("start NATS in %s: not ready within %s", b.opts.StoreDir, startWait)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.server = s
	return nil
}

// forDocuments is what their streams may have.
func (b *Bus) forDocuments() int64 {
	if b.opts.Documents <= 0 {
		return 0
	}
	return b.opts.Documents + heardBytes
}

// startWait is far above what an embedded server takes to start.
const startWait = 10 * time.Second

// stopServer stops the embedded one, where there is one.
func (b *Bus) stopServer() {
	b.mu.Lock()
	s := b.server
	b.server = nil
	b.mu.Unlock()
	if s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// inProcess connects to the embedded server that runs now.
type inProcess struct{ *Bus }

// InProcessConn implements nats.InProcessConnProvider.
func (b inProcess) InProcessConn() (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return nil, errors.New("the embedded NATS does not run")
	}
	return b.server.InProcessConn()
}

// own takes the folder for this process alone.
func (b *Bus) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the embedded NATS, bus.storeDir: %w", err)
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
