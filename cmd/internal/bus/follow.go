package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// lookIn is how often a follower looks whether the stream is still the one it follows.
const lookIn = 10 * time.Second

var errReplaced = errors.New("the stream was made again")

// Follow hands over the newest message of every key, and then each that comes, until ctx
// ends. It keeps no place of its own: who starts again is told all that is true. A message
// may come more than once. When NATS, or its store, was gone, it starts again by itself
// and tells trouble why it had to.
func (b *Bus) Follow(ctx context.Context, t Topic, take func(key string, body []byte), trouble func(error)) {
	b.following(ctx, t, func(_ context.Context, messages jetstream.MessagesContext, _ uint64) error {
		for {
			m, err := messages.Next()
			if err != nil {
				return err
			}
			take(b.keyOf(t, m), m.Data())
		}
	}, trouble)
}

const (
	// inOne is how many messages are handed over at once, at most.
	inOne = 500
	// quiet is how long nothing comes before what has come is handed over. How much is left
	// NATS tells with each message, and counts too much by those that were replaced before they
	// were delivered (nats-server 2.15.2).
	quiet = 200 * time.Millisecond
)

// Replicate is Follow for who writes what it is told, many messages at once: take is told
// when it has all that there was when it began. Its error has it told everything again.
func (b *Bus) Replicate(ctx context.Context, t Topic, take func(ctx context.Context, bodies [][]byte, all bool) error, trouble func(error)) {
	b.following(ctx, t, func(ctx context.Context, messages jetstream.MessagesContext, last uint64) error {
		if last == 0 {
			if err := take(ctx, nil, true); err != nil {
				return err
			}
		}
		var bodies [][]byte
		var wait []jetstream.NextOpt
		for all := last == 0; ; {
			m, err := messages.Next(wait...)
			over := errors.Is(err, nats.ErrTimeout)
			if err != nil && !over {
				return err
			}
			if !over {
				meta, err := m.Metadata()
				if err != nil {
					return err
				}
				bodies, wait = append(bodies, m.Data()), []jetstream.NextOpt{jetstream.NextMaxWait(quiet)}
				over = meta.NumPending == 0 || len(bodies) == inOne
				all = all || meta.NumPending == 0 || meta.Sequence.Stream >= last
			}
			if !over {
				continue
			}
			if err := take(ctx, bodies, all); err != nil {
				return err
			}
			bodies, wait = nil, nil // without any it waits as long as NATS shows that it is there
		}
	}, trouble)
}

func (b *Bus) keyOf(t Topic, m jetstream.Msg) string {
	return strings.TrimPrefix(m.Subject(), b.subject(t, ""))
}

// following has messages read until ctx ends, again whenever that fails. last is the newest that
// there is when it begins; 0: there is none.
func (b *Bus) following(ctx context.Context, t Topic, read func(ctx context.Context, messages jetstream.MessagesContext, last uint64) error, trouble func(error)) {
	pauses := backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(0), backoff.WithMaxInterval(5*time.Second))
	for ctx.Err() == nil {
		began := b.now()
		err := b.follow(ctx, t, read)
		if ctx.Err() != nil {
			return
		}
		trouble(err)
		if b.now().Sub(began) > time.Minute {
			pauses.Reset()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

// follow follows until something is wrong.
func (b *Bus) follow(ctx context.Context, t Topic, read func(ctx context.Context, messages jetstream.MessagesContext, last uint64) error) error {
	s, err := b.js.Stream(ctx, b.name(t))
	if err != nil {
		return fmt.Errorf("follow stream %s: %w", b.name(t), err)
	}
	messages, err := b.messages(ctx, s, t)
	if err != nil {
		return fmt.Errorf("follow stream %s: %w", b.name(t), err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		defer messages.Stop()
		cancel(b.watch(ctx, t, s.CachedInfo().Created))
	}()
	defer func() { <-watching }()
	defer cancel(nil)
	state := s.CachedInfo().State
	if state.Msgs == 0 {
		state.LastSeq = 0
	}
	err = read(ctx, messages, state.LastSeq)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("follow stream %s: %w", b.name(t), err)
}

func (b *Bus) messages(ctx context.Context, s jetstream.Stream, t Topic) (jetstream.MessagesContext, error) {
	// By itself it would try again for ever, with pauses of 10 s between tries of 10 s: a
	// NATS that has elected another leader long since would not be read from.
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{b.subject(t, ">")}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, MaxResetAttempts: 1})
	if err != nil {
		return nil, err
	}
	return c.Messages(jetstream.PullMaxMessages(256), jetstream.PullHeartbeat(heartbeat))
}

// watch ends when the stream is not the one that is followed: its messages are counted from
// one again, and a consumer of the old one would wait for a number that does not come.
func (b *Bus) watch(ctx context.Context, t Topic, created time.Time) error {
	tick := time.NewTicker(lookIn)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		s, err := b.js.Stream(ctx, b.name(t))
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return errReplaced
		case err == nil && !s.CachedInfo().Created.Equal(created):
			return errReplaced
		}
	}
}
