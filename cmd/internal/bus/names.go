package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// schema is the version of what the messages hold. Another one gets streams of its own:
// readers of either never see what they cannot read.
const schema = "v1"

// The metadata that tell a stream of ours from one that only has its name.
const (
	ofCluster = "unpend.dev/cluster"
	ofSchema  = "unpend.dev/schema"
)

// name of a topic's stream.
func (b *Bus) name(t Topic) string {
	return "UNPEND_" + strings.ToUpper(schema) + "_" + b.opts.Cluster + "_" + t.stream
}

// subject that a message of a topic is stored under; its key may have dots.
func (b *Bus) subject(t Topic, key string) string {
	return strings.Join([]string{"unpend", schema, b.opts.Cluster, t.subject, key}, ".")
}

func (b *Bus) config(t Topic) jetstream.StreamConfig {
	c := jetstream.StreamConfig{Name: b.name(t), Subjects: []string{b.subject(t, ">")}, Storage: jetstream.FileStorage, MaxAge: maxAge, Duplicates: duplicates,
		MaxBytes: b.opts.MaxBytes / int64(len(topics)), MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, AllowDirect: true,
		Description: "unpend, which explains why GPU pods wait", Metadata: map[string]string{ofCluster: b.opts.Cluster, ofSchema: schema}}
	switch t {
	case Documents: // nobody tells them again
		c.MaxAge, c.MaxBytes, c.MaxMsgSize, c.Discard = 0, b.opts.Documents, maxDocument, jetstream.DiscardNew
	case Heard:
		c.MaxBytes = heardBytes
	}
	if b.opts.Memory {
		c.Storage = jetstream.MemoryStorage
	}
	return c
}

// make has a topic's stream there, and says whether one that was there has been made again.
// A stream that we did not make is refused and left as it is.
func (b *Bus) make(ctx context.Context, t Topic) (again bool, err error) {
	want := b.config(t)
	_, unknown := b.at(t)
	at, err := b.js.Stream(ctx, want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		again = unknown == nil
		at, err = b.create(ctx, want)
	case err == nil:
		is := at.CachedInfo().Config
		if is.Metadata[ofCluster] != b.opts.Cluster || is.Metadata[ofSchema] != schema || !slices.Equal(is.Subjects, want.Subjects) {
			return false, foreign(is.Name, is.Subjects)
		}
		if unknown == nil {
			return false, nil
		}
		at, err = b.js.UpdateStream(ctx, replicated(want, cmp.Or(b.opts.Replicas, is.Replicas)))
	}
	if err != nil {
		if other := b.inTheWay(ctx, want, err); other != nil {
			return false, other
		}
		return false, fmt.Errorf("make stream %s: %w", want.Name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[t] = at
	return again, nil
}

// asMany is how many replicas outlive the loss of a server.
const asMany = 3

// create makes a stream with the replicas that are asked for. Where nobody says how many,
// those are three, unless NATS is no cluster, or one of fewer servers.
func (b *Bus) create(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	if b.opts.Replicas > 0 || b.opts.URL == "" {
		return b.js.CreateStream(ctx, replicated(want, max(1, b.opts.Replicas)))
	}
	at, err := b.js.CreateStream(ctx, replicated(want, asMany))
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && (api.ErrorCode == noCluster || api.ErrorCode == tooFew && len(b.conn.Servers()) < asMany) {
		return b.js.CreateStream(ctx, replicated(want, 1))
	}
	return at, err
}

// The errors of nats-server that say that a stream cannot have so many replicas (its
// errors.json): at all, and with the servers that are there now.
const (
	noCluster jetstream.ErrorCode = 10074
	tooFew    jetstream.ErrorCode = 10005
)

// replicated is a stream of so many replicas. Of several, the one that leads is asked what
// is stored: another may be behind, and news would be taken for known.
func replicated(c jetstream.StreamConfig, n int) jetstream.StreamConfig {
	c.Replicas, c.AllowDirect = n, n <= 1
	return c
}

// ForeignError names a stream on the same NATS that somebody else made where ours would be.
type ForeignError struct {
	Stream   string
	Subjects []string
}

func foreign(stream string, subjects []string) *ForeignError {
	return &ForeignError{stream, slices.Sorted(slices.Values(subjects))}
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("stream %s of this NATS was not made by unpend, and was left as it is: it takes the subjects %s, where unpend's messages would go; rename it, or give unpend an account of its own",
		e.Stream, cmp.Or(strings.Join(e.Subjects, ", "), "of no one"))
}

// overlap is nats-server's JSStreamSubjectOverlapErr.
const overlap jetstream.ErrorCode = 10065

// inTheWay is the stream that already takes the subjects of one that could not be made,
// when that is why.
func (b *Bus) inTheWay(ctx context.Context, want jetstream.StreamConfig, err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok || api.ErrorCode != overlap {
		return nil
	}
	name, err := b.js.StreamNameBySubject(ctx, want.Subjects[0])
	if err != nil {
		return nil
	}
	at, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil
	}
	return foreign(name, at.CachedInfo().Config.Subjects)
}
