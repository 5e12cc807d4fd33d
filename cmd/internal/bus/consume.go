package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Handler deals with one message; an error, or a panic, has it delivered again
// later, and parked after the third time.
type Handler func(ctx context.Context, key string, body []byte) error

// Consume hands every message of a topic to handle, one at a time, until ctx
// ends. durable names the reader: it goes on where it was after a restart.
func (b *Bus) Consume(ctx context.Context, t Topic, durable string, handle Handler) error {
	consumer, err := b.js.CreateOrUpdateConsumer(ctx, b.name(t), jetstream.ConsumerConfig{Durable: durable, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: ackWait, MaxAckPending: 1, MaxDeliver: tries + 1})
	if err != nil {
		return fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(64))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	for {
		m, err := messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return nil
		}
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
	if ctx.Err() != nil {
		return nil // it is delivered again after the restart
	}
	if failure == nil {
		return m.Ack() // one that gets lost means one delivery more
	}
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("read a message's metadata: %w", err)
	}
	if meta.NumDelivered < tries {
		return m.NakWithDelay(retryIn)
	}
	return b.park(ctx, key, m, failure)
}

// guarded runs the handler, tells NATS that it is still at work, and turns a
// panic into an error: one bad message must not take the others with it.
func guarded(ctx context.Context, m jetstream.Msg, key string, handle Handler) (err error) {
	working := time.AfterFunc(ackWait/2, func() { m.InProgress() }) //nolint:errcheck // a missed sign of life means one delivery more
	defer working.Stop()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return handle(ctx, key, m.Data())
}

// park keeps a message that cannot be dealt with where people can see it.
func (b *Bus) park(ctx context.Context, key string, m jetstream.Msg, why error) error {
	if _, err := b.js.Publish(ctx, b.subject(deadLetters, key), m.Data(), jetstream.WithExpectStream(b.name(deadLetters))); err != nil {
		return fmt.Errorf("park a message: %w", err)
	}
	return m.TermWithReason(why.Error())
}

// Parked counts the messages that could not be dealt with.
func (b *Bus) Parked(ctx context.Context) (uint64, error) {
	s, err := b.js.Stream(ctx, b.name(deadLetters))
	if err != nil {
		return 0, fmt.Errorf("read stream %s: %w", b.name(deadLetters), err)
	}
	return s.CachedInfo().State.Msgs, nil
}
