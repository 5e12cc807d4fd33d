package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// every is how often it is looked whether all is there.
	every = time.Second
	// answers is what NATS has for the answers to that.
	answers = 2 * time.Second
	// restarts of the embedded server are at least so far apart.
	restarts = 10 * time.Second
)

// Recovered receives when messages are taken again that were not for a while, or when what
// was kept is gone: who publishes should tell everything again. It is for one reader.
func (b *Bus) Recovered() <-chan struct{} { return b.well }

// lookNow has the keeper look without waiting for its time.
func (b *Bus) lookNow() { signal(b.wake) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // there is one already
	}
}

// keep looks after the bus until ctx ends: it starts the embedded server again, makes
// streams that are gone, and tells of trouble.
func (b *Bus) keep(ctx context.Context) {
	due := time.NewTicker(every)
	defer due.Stop()
	said := b.tell(ctx, nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		case <-b.wake:
		}
		b.look(ctx)
		said = b.tell(ctx, said)
	}
}

// tell logs and counts trouble, once for each reason.
func (b *Bus) tell(ctx context.Context, said *Trouble) *Trouble {
	is, _ := errors.AsType[*Trouble](b.Healthy())
	b.metrics.trouble(is)
	switch {
	case ctx.Err() != nil:
	case is != nil && (said == nil || said.Reason != is.Reason):
		b.opts.Logger.ErrorContext(ctx, "messages are not taken", "reason", is.Reason, "since", is.Since, "error", is.Err)
	case is == nil && said != nil:
		b.opts.Logger.InfoContext(ctx, "messages are taken again", "reason", said.Reason, "after", b.now().Sub(said.Since).Round(time.Millisecond).String())
		signal(b.well)
	}
	return is
}

// look finds out whether messages are taken, and does what it can about it.
func (b *Bus) look(ctx context.Context) {
	err := b.tend(ctx)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		b.moved.move(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.found = nil
		for t, f := range b.failing {
			if f.Reason == NotConnected || f.Reason == StreamsMissing || errors.Is(f, errFull) {
				delete(b.failing, t) // NATS is there, and all streams, and room
			}
		}
		return
	}
	now := &Trouble{Reason: reasonOf(err), Since: b.now(), Err: err}
	if now.Reason == PublishFailing && !b.conn.IsConnected() {
		now.Reason = NotConnected
	}
	if b.found != nil && b.found.Reason == now.Reason {
		now.Since = b.found.Since
	}
	b.found = now
}

func (b *Bus) tend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	if err := b.room(); err != nil {
		return err
	}
	if err := b.revive(); err != nil {
		return err
	}
	if !b.conn.IsConnected() {
		return b.unanswered()
	}
	for _, t := range b.opts.topics() {
		made, err := b.make(ctx, t)
		if err != nil {
			return err
		}
		if made {
			signal(b.well)
		}
	}
	return b.letters.count(ctx)
}

// revive starts the embedded server again when its volume was full or its writes fail: a
// stream of which a write has failed takes no other until then.
func (b *Bus) revive() error {
	if b.opts.URL != "" {
		return nil
	}
	b.mu.Lock()
	was, runs, broken := b.found, b.server != nil, false
	for _, f := range b.failing {
		broken = broken || (f.Reason == PublishFailing || f.Reason == StoreFull) && !errors.Is(f, errFull)
	}
	b.mu.Unlock()
	full := was != nil && errors.Is(was, errFull)
	if runs && !full && (!broken || b.now().Sub(b.revived) < restarts) {
		return nil
	}
	b.stopServer()
	b.revived = b.now()
	if err := b.serve(); err != nil {
		return err
	}
	b.mu.Lock()
	clear(b.failing) // of the server that was
	b.mu.Unlock()
	return b.conn.ForceReconnect() // it has not noticed yet
}

// at is a topic's stream.
func (b *Bus) at(t Topic) (jetstream.Stream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.streams[t]; s != nil {
		return s, nil
	}
	return nil, errNoStream
}

var errNoStream = errors.New("its stream is not there yet")
