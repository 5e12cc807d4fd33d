package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Handler deals with one message; an error, or a panic, has it delivered again
// later, and parked after the third time.
type Handler func(ctx context.Context, key string, body []byte) error

// Consume hands every message of a topic to handle, one at a time, until ctx
// ends. durable names the reader: it goes on where it was after a restart.
func (b *Bus) Consume(ctx context.Context, t Topic, durable string, handle Handler) error {
	consumer, err := b.js.CreateOrUpdateConsumer(ctx, t.stream, jetstream.ConsumerConfig{Durable: durable, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: ackWait, MaxAckPending: 1, MaxDeliver: tries + 1})
	if err != nil {
		return fmt.Errorf("read stream %s: %w", t.stream, err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(64))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", t.stream, err)
	}
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	for {
		m, err := messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read stream %s: %w", t.stream, err)
		}
		if err := b.deal(ctx, t, m, handle); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (b *Bus) deal(ctx context.Context, t Topic, m jetstream.Msg, handle Handler) error {
	key := strings.TrimPrefix(m.Subject(), t.subject+".")
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

// park keeps a message that was delivered and cannot be dealt with.
func (b *Bus) park(ctx context.Context, key string, m jetstream.Msg, why error) error {
	if err := b.Park(ctx, key, m.Data(), why); err != nil {
		return err
	}
	return m.TermWithReason(why.Error())
}

// Park keeps a message that nobody can deal with where people can see it, and why.
func (b *Bus) Park(ctx context.Context, key string, body []byte, why error) error {
	m := &nats.Msg{Subject: deadLetters.subject + "." + key, Data: body, Header: nats.Header{whyHeader: {firstLine(why)}}}
	if _, err := b.js.PublishMsg(ctx, m, jetstream.WithExpectStream(deadLetters.stream)); err != nil {
		return fmt.Errorf("park a message: %w", err)
	}
	return nil
}

// whyHeader says of a dead letter why it is one.
const whyHeader = "Unpend-Why"

// firstLine is what of an error fits into a header.
func firstLine(why error) string {
	first, _, _ := strings.Cut(why.Error(), "\n")
	return first
}

// Parked counts the messages that could not be dealt with.
func (b *Bus) Parked(ctx context.Context) (uint64, error) {
	s, err := b.js.Stream(ctx, deadLetters.stream)
	if err != nil {
		return 0, fmt.Errorf("read stream %s: %w", deadLetters.stream, err)
	}
	return s.CachedInfo().State.Msgs, nil
}
