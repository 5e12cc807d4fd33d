package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Question is a kind of question that one process asks and any other answers. It is no message:
// nothing of it is kept, and who is not there misses it.
type Question string

// Search asks what the team has said.
const Search Question = "search"

// ErrNobody says that no process answers such questions.
var ErrNobody = errors.New("no process answers")

// patience is how long an answer is waited for.
const patience = 10 * time.Second

func (b *Bus) question(q Question) string {
	return b.subject(Topic{subject: "ask"}, string(q))
}

// Ask asks and waits for the answer of one process, ten seconds at most. ErrNobody: there is
// none that would.
func (b *Bus) Ask(ctx context.Context, q Question, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, b.question(q), body)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("ask over NATS: %w", ErrNobody)
	case err != nil:
		return nil, fmt.Errorf("ask over NATS: %w", err)
	}
	return m.Data, nil
}

// Answer answers questions, one after the other, until ctx ends; of several processes that do,
// each question goes to one.
func (b *Bus) Answer(ctx context.Context, q Question, answer func(ctx context.Context, body []byte) []byte) error {
	asked, err := b.conn.QueueSubscribeSync(b.question(q), "unpend")
	if err != nil {
		return fmt.Errorf("answer over NATS: %w", err)
	}
	defer asked.Unsubscribe() //nolint:errcheck // it ends with the connection at the latest
	for {
		m, err := asked.NextMsgWithContext(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, nats.ErrSlowConsumer) {
			continue // some were lost: who asked them asks again
		}
		if err != nil {
			return fmt.Errorf("answer over NATS: %w", err)
		}
		if err := m.Respond(answer(ctx, m.Data)); err != nil && b.conn.IsClosed() {
			return fmt.Errorf("answer over NATS: %w", err)
		}
	}
}
