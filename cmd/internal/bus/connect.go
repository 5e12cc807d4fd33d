package bus

import (
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

func (b *Bus) connect() error {
	dial := []nats.Option{nats.MaxReconnects(-1), nats.Name("unpend"), nats.CustomInboxPrefix("_INBOX_unpend")}
	if b.opts.URL == "" {
		if err := b.embed(); err != nil {
			return err
		}
		dial = append(dial, nats.InProcessServer(b.server))
	}
	var err error
	if b.conn, err = nats.Connect(b.opts.URL, dial...); err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	return nil
}

// embed starts NATS without a listener: there is no port to attack. SyncAlways:
// otherwise an ack says nothing about the disk.
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
	// The streams of an older unpend, or of a cluster that had the volume before, count too.
	s, err := server.NewServer(&server.Options{ServerName: "unpend", DontListen: true, JetStream: true, StoreDir: b.opts.StoreDir, SyncAlways: true, NoSigs: true,
		NoLog: true, JetStreamMaxStore: 4 * b.opts.MaxBytes, JetStreamMaxMemory: b.opts.MaxBytes})
	if err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	b.server = s
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("start NATS in %s: not ready within 10 s", b.opts.StoreDir)
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

// Healthy says what keeps messages from being taken; nil when nothing does.
func (b *Bus) Healthy() error {
	if !b.conn.IsConnected() {
		return errors.New("NATS is not connected")
	}
	return nil
}
