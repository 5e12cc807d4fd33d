package bus

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Handler deals with one message; an error, or a panic, has it delivered again
// later, and parked after the third time.
type Handler func(ctx context.Context, key string, body []byte) error

// Consume hands every message of a topic to handle, one at a time, until ctx
// ends. durable names the reader: it goes on where it was after a restart. When NATS is
// away, or has lost what it had, reading begins again by itself.
func (b *Bus) Consume(ctx context.Context, t Topic, durable string, handle Handler) error {
	for {
		err := b.consume(ctx, t, durable, handle)
		if ctx.Err() != nil {
			return nil
		}
		if b.Healthy() == nil { // else that is told
			b.opts.Logger.WarnContext(ctx, "reading begins again", "topic", t.subject, "error", err)
		}
		if !pause(ctx) {
			return nil
		}
	}
}

// pause waits before another try; false when ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(retryIn):
		return true
	}
}

func (b *Bus) consume(ctx context.Context, t Topic, durable string, handle Handler) error {
	consumer, err := b.js.CreateOrUpdateConsumer(ctx, b.name(t), jetstream.ConsumerConfig{Durable: durable, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: ackWait, MaxAckPending: 1, MaxDeliver: tries + 1})
	if err != nil {
		return fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(64), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	defer messages.Stop()
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	for {
		m, err := messages.Next()
		if err != nil {
			return fmt.Errorf("read stream %s: %w", b.name(t), err)
		}
		if err := b.deal(ctx, t, m, handle); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (b *Bus) deal(ctx context.Context, t Topic, m jetstream.Msg, handle Handler) error {
	key := strings.TrimPrefix(m.Subject(), b.subject(t, ""))
	failure := guarded(ctx, m, key, handle)
	for failure != nil && b.Healthy() != nil && pause(ctx) { // nothing is wrong with the message
		failure = guarded(ctx, m, key, handle)
	}
	if ctx.Err() != nil {
		return nil // it is delivered again after the restart
	}
	if failure == nil {
		if err := b.Settled(ctx, t, key); err != nil {
			return err
		}
		return m.Ack() // one that gets lost means one delivery more
	}
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("read a message's metadata: %w", err)
	}
	if meta.NumDelivered < tries {
		return m.NakWithDelay(retryIn)
	}
	return b.park(ctx, t, key, m, meta.NumDelivered, failure)
}

// guarded runs the handler, tells NATS that it is still at work, and turns a
// panic into an error: one bad message must not take the others with it.
func guarded(ctx context.Context, m jetstream.Msg, key string, handle Handler) (err error) {
	m.InProgress()                                                  //nolint:errcheck // a missed sign of life means one delivery more
	working := time.AfterFunc(ackWait/2, func() { m.InProgress() }) //nolint:errcheck // as above
	defer working.Stop()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return handle(ctx, key, m.Data())
}
