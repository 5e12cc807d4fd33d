package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The headers of a dead letter.
const (
	whyHeader   = "Unpend-Why"   // what came of the last try
	triesHeader = "Unpend-Tries" // how often it was tried
	maxWhy      = 1000           // characters
	headerRoom  = 8 << 10        // of all of them together; a message may be as large as NATS takes
)

// park keeps a message that was delivered and cannot be dealt with.
func (b *Bus) park(ctx context.Context, t Topic, key string, m jetstream.Msg, tried uint64, failure error) error {
	if err := b.Park(ctx, t, key, m.Data(), tried, failure); err != nil {
		return err
	}
	return m.TermWithReason(oneLine(failure.Error()))
}

// Park keeps a message that cannot be dealt with, and why, where people can see it, and
// says so once. Of one key the newest is kept.
func (b *Bus) Park(ctx context.Context, t Topic, key string, body []byte, tried uint64, failure error) error {
	why := oneLine(failure.Error())
	letter := nats.NewMsg(b.letters.subject(t, key))
	letter.Data = body[:max(0, min(len(body), int(b.conn.MaxPayload())-headerRoom))] // its beginning says what it was
	letter.Header.Set(whyHeader, why)
	letter.Header.Set(triesHeader, strconv.FormatUint(tried, 10))
	_, err := b.js.PublishMsg(ctx, letter, jetstream.WithExpectStream(b.name(deadLetters)))
	if err := b.published(ctx, deadLetters, err); err != nil {
		return err
	}
	b.opts.Logger.ErrorContext(ctx, "a message could not be dealt with and is parked", "topic", t.subject, "key", key, "tries", tried, "error", why, "stream", b.name(deadLetters))
	b.letters.set(letter.Subject, true)
	return nil
}

// Settled forgets the dead letter of a key: a later message of it was dealt with.
func (b *Bus) Settled(ctx context.Context, t Topic, key string) error {
	subject := b.letters.subject(t, key)
	if !b.letters.has(subject) {
		return nil
	}
	dead, err := b.at(deadLetters)
	if err != nil {
		return err
	}
	if err := dead.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		return fmt.Errorf("forget the dead letter of %s: %w", key, err)
	}
	b.letters.set(subject, false)
	return nil
}

// Parked counts the messages that could not be dealt with.
func (b *Bus) Parked(ctx context.Context) (uint64, error) {
	info, err := b.letters.info(ctx)
	if err != nil {
		return 0, err
	}
	return info.State.Msgs, nil
}

// letters are the dead letters that there are.
type letters struct {
	bus *Bus

	mu     sync.Mutex
	parked map[string]bool // by subject
}

func (l *letters) subject(t Topic, key string) string {
	return l.bus.subject(deadLetters, t.subject+"."+key)
}

func (l *letters) has(subject string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.parked[subject]
}

func (l *letters) set(subject string, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.parked, subject); is {
		l.parked[subject] = true
	}
	l.bus.metrics.dead.Set(float64(len(l.parked)))
}

// count finds them: another process may have parked them, and they grow too old.
func (l *letters) count(ctx context.Context) error {
	info, err := l.info(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.parked)
	for subject := range info.State.Subjects {
		l.parked[subject] = true
	}
	l.bus.metrics.dead.Set(float64(len(l.parked)))
	return nil
}

func (l *letters) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	dead, err := l.bus.at(deadLetters)
	if err != nil {
		return nil, err
	}
	info, err := dead.Info(ctx, jetstream.WithSubjectFilter(l.bus.subject(deadLetters, ">")))
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", l.bus.name(deadLetters), err)
	}
	return info, nil
}

// oneLine is a text as a header can hold it.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if r := []rune(s); len(r) > maxWhy {
		s = string(r[:maxWhy]) + "…"
	}
	return s
}

// Letter is a message that could not be dealt with.
type Letter struct {
	Topic string    `json:"topic"`
	Key   string    `json:"key"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
}

// Letters are the messages of a cluster that are parked on a NATS, by topic and key: the
// first of them, and how many there are. Nothing is made there, nor changed.
func Letters(ctx context.Context, url, cluster string, most int) (first []Letter, all int, err error) {
	conn, err := nats.Connect(url, nats.Name("unpend status"))
	if err != nil {
		return nil, 0, fmt.Errorf("connect to NATS: %w", err)
	}
	defer conn.Close()
	b := &Bus{opts: Options{Cluster: cluster}}
	if b.js, err = jetstream.New(conn); err != nil {
		return nil, 0, fmt.Errorf("use JetStream: %w", err)
	}
	dead, err := b.js.Stream(ctx, b.name(deadLetters))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, 0, fmt.Errorf("no service of this cluster has used this NATS: it has no stream %s", b.name(deadLetters))
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read stream %s: %w", b.name(deadLetters), err)
	}
	info, err := dead.Info(ctx, jetstream.WithSubjectFilter(b.subject(deadLetters, ">")))
	if err != nil {
		return nil, 0, fmt.Errorf("read stream %s: %w", b.name(deadLetters), err)
	}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		if len(first) == most {
			break
		}
		m, err := dead.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it was dealt with in between
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read stream %s: %w", b.name(deadLetters), err)
		}
		topic, key, _ := strings.Cut(strings.TrimPrefix(subject, b.subject(deadLetters, "")), ".")
		first = append(first, Letter{topic, key, m.Header.Get(whyHeader), m.Time})
	}
	return first, len(info.State.Subjects), nil
}
