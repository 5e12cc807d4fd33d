package bus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Reason is why messages are not taken: a closed list, for metrics.
type Reason string

// The reasons.
const (
	NotConnected   Reason = "not-connected"
	StoreFull      Reason = "store-full"
	StreamsMissing Reason = "streams-missing"
	ForeignStream  Reason = "foreign-stream"
	PublishFailing Reason = "publish-failing"
	TooLarge       Reason = "too-large"  // one message: nothing is wrong with the bus
	TopicFull      Reason = "topic-full" // of the documents: nothing is wrong with what else it does
)

var reasons = []Reason{NotConnected, StoreFull, StreamsMissing, ForeignStream, PublishFailing, TooLarge, TopicFull}

// ErrTopicFull is of a message that its stream has no room for.
var ErrTopicFull = errors.New("the stream is full")

// Trouble is what keeps messages from being taken, and since when.
type Trouble struct {
	Reason Reason
	Since  time.Time
	Err    error

	last time.Time // that it was seen
}

func (t *Trouble) Error() string {
	return fmt.Sprintf("%s since %s: %v", t.Reason, t.Since.UTC().Format(time.RFC3339), t.Err)
}

func (t *Trouble) Unwrap() error { return t.Err }

// forgets is how long a publish that failed counts. Who publishes tries again within
// seconds, as long as there is something to say.
const forgets = time.Minute

// Healthy says what keeps messages from being taken, a *Trouble; nil when nothing does.
func (b *Bus) Healthy() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.found != nil {
		return b.found
	}
	if !b.conn.IsConnected() {
		return &Trouble{Reason: NotConnected, Since: b.now(), Err: b.unanswered()}
	}
	for _, t := range b.opts.topics() {
		if f := b.failing[t]; f != nil && b.now().Sub(f.last) < forgets {
			return f
		}
	}
	return nil
}

var errAway = errors.New("NATS does not answer")

// unanswered says where nobody answers, without passwords.
func (b *Bus) unanswered() error {
	var hosts []string
	for one := range strings.SplitSeq(b.opts.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil && u.Host != "" {
			hosts = append(hosts, u.Host)
		}
	}
	err := errAway
	if hosts != nil {
		err = fmt.Errorf("%w at %s (bus.url)", errAway, strings.Join(hosts, ", "))
	}
	if why := b.conn.LastError(); why != nil {
		return fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// published notes what came of publishing to a topic, and says what an error is about.
func (b *Bus) published(ctx context.Context, t Topic, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		delete(b.failing, t)
		return nil
	}
	failure := fmt.Errorf("publish to %s: %w", b.name(t), err)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return failure // who published does not want it any more
	}
	why := reasonOf(err)
	b.metrics.failures.WithLabelValues(t.subject, string(why)).Inc()
	switch why {
	case TooLarge:
		return failure
	case TopicFull:
		return fmt.Errorf("%w: %w", ErrTopicFull, failure)
	}
	now := Trouble{Reason: why, Since: b.now(), Err: failure, last: b.now()}
	if before := b.failing[t]; before != nil && now.last.Sub(before.last) < forgets {
		now.Since = before.Since
	}
	b.failing[t] = &now
	b.lookNow()
	return failure
}

// The errors of nats-server that say that there is no room (its errors.json), and the one
// that says that a stream is not the one that was meant.
var (
	noRoom       = map[jetstream.ErrorCode]bool{10002: true, 10023: true, 10028: true, 10047: true}
	storeFailed  = jetstream.ErrorCode(10077)
	anotherTaken = jetstream.ErrorCode(10060)
)

func reasonOf(err error) Reason {
	api, ok := errors.AsType[*jetstream.APIError](err)
	switch {
	case is[*ForeignError](err):
		return ForeignStream
	case errors.Is(err, errFull), ok && noRoom[api.ErrorCode], ok && api.ErrorCode == storeFailed && strings.Contains(api.Description, "no space left"):
		return StoreFull
	case ok && api.ErrorCode == storeFailed && strings.Contains(api.Description, "maximum bytes exceeded"):
		return TopicFull
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected), errors.Is(err, errAway):
		return NotConnected
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, errNoStream), ok && api.ErrorCode == anotherTaken:
		return StreamsMissing
	case errors.Is(err, nats.ErrMaxPayload), ok && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return TooLarge
	}
	return PublishFailing
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// reserve is what stays free of the volume. A write that finds it full breaks a stream until
// the embedded server is started again, so it does not come to that by our own messages.
const reserve = 2 << 20

// able says whether a message may be published now. A connection that was never there says of
// a publish what has nothing to do with it.
func (b *Bus) able() error {
	if err := b.room(); err != nil {
		return err
	}
	if !b.conn.IsConnected() {
		return b.unanswered()
	}
	return nil
}

var errFull = errors.New("the volume of the embedded NATS is full")

// room says whether the embedded server may write.
func (b *Bus) room() error {
	if b.opts.URL != "" || b.opts.Memory {
		return nil
	}
	bytes, err := b.free(b.opts.StoreDir)
	if err != nil || bytes >= reserve { // a volume that does not tell is tried
		return nil
	}
	return fmt.Errorf("%w: %d KiB are left in %s, and %d have to be; make room, or set a smaller bus.maxBytes", errFull, bytes>>10, b.opts.StoreDir, reserve>>10)
}

// free is how much a process without privileges may still write.
func free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert,gosec // their types are the system's; no volume has 2^63 bytes
}
