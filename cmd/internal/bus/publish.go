package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// traceParent is the header that carries a trace: https://www.w3.org/TR/trace-context/#traceparent-header
const traceParent = "traceparent"

type traced struct{}

// Traced has what is published in the context carry a trace.
func Traced(ctx context.Context, parent string) context.Context {
	return context.WithValue(ctx, traced{}, parent)
}

func message(ctx context.Context, subject string, body []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: body}
	if parent, is := ctx.Value(traced{}).(string); is {
		m.Header = nats.Header{traceParent: {parent}}
	}
	return m
}

// Publish stores a message under a key and returns when it is stored. A message
// id seen before is a duplicate, and success.
func (b *Bus) Publish(ctx context.Context, t Topic, key, id string, body []byte) error {
	err := b.able()
	if err == nil {
		_, err = b.js.PublishMsg(ctx, message(ctx, b.subject(t, key), body), jetstream.WithMsgID(id), jetstream.WithExpectStream(b.name(t)))
	}
	return b.published(ctx, t, err)
}

// PublishNewer is Publish where several may write under one key. What is stored
// stays when it is the same, and when older says that the new message tells of an
// earlier moment: a publisher that lags takes nobody's news away.
func (b *Bus) PublishNewer(ctx context.Context, t Topic, key, id string, body []byte, older func(stored []byte) bool) error {
	err := b.able()
	if err == nil {
		err = b.publishNewer(ctx, t, key, id, body, older)
	}
	return b.published(ctx, t, err)
}

func (b *Bus) publishNewer(ctx context.Context, t Topic, key, id string, body []byte, older func(stored []byte) bool) error {
	subject, unique := b.subject(t, key), id
	for {
		last, err := b.last(ctx, t, subject)
		if err != nil {
			return err
		}
		if last.Sequence > 0 && (bytes.Equal(last.Data, body) || older(last.Data) && b.now().Sub(last.Time) < maxLag) {
			return nil
		}
		ack, err := b.js.PublishMsg(ctx, message(ctx, subject, body), jetstream.WithMsgID(unique), jetstream.WithExpectStream(b.name(t)), jetstream.WithExpectLastSequencePerSubject(last.Sequence))
		switch {
		case err == nil && !ack.Duplicate:
			return nil
		case err == nil:
			// JetStream remembers it, but something else was stored after it: facts
			// that come back are news.
			unique = fmt.Sprintf("%s-%d", id, last.Sequence)
		case !overtaken(err):
			return err
		}
	}
}

// overtaken says that somebody else published in between.
func overtaken(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// last is the message kept of a subject; the zero one when there is none.
func (b *Bus) last(ctx context.Context, t Topic, subject string) (*jetstream.RawStreamMsg, error) {
	at, err := b.at(t)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	m, err := at.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return &jetstream.RawStreamMsg{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	return m, nil
}

// Said tells whether the newest message kept under a key was published under an id.
func (b *Bus) Said(ctx context.Context, t Topic, key, id string) (bool, error) {
	m, err := b.last(ctx, t, b.subject(t, key))
	if err != nil {
		return false, err
	}
	stored := m.Header.Get(jetstream.MsgIDHeader)
	return stored == id || strings.HasPrefix(stored, id+"-"), nil // see publishNewer
}

// Kept hands over what is kept of a topic now: the newest message of each key.
func (b *Bus) Kept(ctx context.Context, t Topic, take func(body []byte) error) error {
	return b.kept(ctx, t, ">", take)
}

// KeptBelow is Kept of the keys that begin so, followed by a dot.
func (b *Bus) KeptBelow(ctx context.Context, t Topic, begin string, take func(body []byte) error) error {
	return b.kept(ctx, t, begin+".>", take)
}

// Keys are those under which something is kept now.
func (b *Bus) Keys(ctx context.Context, t Topic) (map[string]bool, error) {
	at, err := b.at(t)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	info, err := at.Info(ctx, jetstream.WithSubjectFilter(b.subject(t, ">")))
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	keys := make(map[string]bool, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		keys[strings.TrimPrefix(subject, b.subject(t, ""))] = true
	}
	return keys, nil
}

// Newest is the message that is kept under a key, and when it was published; nil where none
// is.
func (b *Bus) Newest(ctx context.Context, t Topic, key string) (body []byte, at time.Time, err error) {
	m, err := b.last(ctx, t, b.subject(t, key))
	if err != nil || m.Sequence == 0 {
		return nil, time.Time{}, err
	}
	return m.Data, m.Time, nil
}

func (b *Bus) kept(ctx context.Context, t Topic, keys string, take func(body []byte) error) error {
	at, err := b.at(t)
	if err != nil {
		return fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	info, err := at.Info(ctx, jetstream.WithSubjectFilter(b.subject(t, keys)))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", b.name(t), err)
	}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		m, err := b.last(ctx, t, subject)
		if err != nil {
			return err
		}
		if m.Sequence == 0 {
			continue // it grew too old in between
		}
		if err := take(m.Data); err != nil {
			return err
		}
	}
	return nil
}
